import { hash } from 'node:crypto';
import { BSON, ObjectId } from 'mongodb';

/**
 * What each field of a pillar is called in the collection to be adopted. Seed 000 names `tgt_type`, `tgt_id`, `name`,
 * `pillarenv`, `value`, `is_secret` and `created_by`; the other three are guesses, and may be absent.
 */
export type AdoptFields = {
  pid: string;
  tgt_type: string;
  tgt_id: string;
  name: string;
  pillarenv: string;
  value: string;
  is_secret: string;
  created_by: string;
  updated_by: string;
  created_at: string;
  updated_at: string;
};

export const SEED_FIELDS: AdoptFields = {
  pid: '_id',
  tgt_type: 'tgt_type',
  tgt_id: 'tgt_id',
  name: 'name',
  pillarenv: 'pillarenv',
  value: 'value',
  is_secret: 'is_secret',
  created_by: 'created_by',
  updated_by: 'updated_by',
  created_at: 'created_at',
  updated_at: 'updated_at',
};

/** A document of the collection to be adopted, read with `promoteValues: false`. */
export type ForeignDocument = { _id: unknown } & Record<string, unknown>;

/** Our fields of a foreign document, under our names. */
export function mapFields(
  document: ForeignDocument,
  fields: AdoptFields,
): Record<keyof AdoptFields, unknown> {
  const entries = Object.entries(fields).map(([ours, theirs]) => [ours, document[theirs]]);
  return Object.fromEntries(entries) as Record<keyof AdoptFields, unknown>;
}

/** The text by which a person finds the document again; of any other type than the usual ones as extended JSON. */
export function idText(id: unknown): string {
  if (typeof id === 'string') return id;
  return id instanceof ObjectId ? id.toHexString() : BSON.EJSON.stringify(id, { relaxed: false });
}

/** Short enough to be kept for every document of a large collection. */
export function shortHash(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 22);
}
