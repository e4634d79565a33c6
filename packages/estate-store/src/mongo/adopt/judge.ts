import {
  hasEncMarker,
  hasNestedEncMarker,
  LIMITS,
  parseEnv,
  TGT_TYPES,
  type TgtType,
  taskTemplateEnv,
  zCollectionId,
  zEnc,
  zEnvName,
  zMasterId,
  zMinionId,
  zPillarName,
  zTaskId,
  zTemplateId,
  zUserSub,
} from '@colonnade/contracts';
import { canonicalBytes, isValue, type Value } from '@colonnade/value';
import { ObjectId } from 'mongodb';
import type { PillarRecord } from '../../port.ts';
import { kidOf } from '../../rules/key-use.ts';
import { masterOf } from '../../rules/pillar-target.ts';
import { NO_KID } from '../schema.ts';
import { readStoredValue } from '../stored-value.ts';
import { type AdoptFields, type ForeignDocument, idText, mapFields } from './fields.ts';

/** Why a document cannot be adopted. */
export type Misfit =
  | 'pid'
  | 'tgt_type'
  | 'tgt_id'
  | 'name'
  /** Not the canonical form for the target (seed 000). */
  | 'pillarenv'
  /** A pillar of a collection without its user, or of one that has another owner. */
  | 'owner'
  | 'is_secret'
  /** `created_by` or `updated_by` is no text, `created_at` or `updated_at` no date. */
  | 'origin'
  /** A type that JSON does not have. */
  | 'value_type'
  | 'value_size'
  /** Secret, and not sealed in version 1 of the form of seed 000, to the byte. */
  | 'not_sealed'
  /** Sealed, and not secret. */
  | 'not_secret'
  /** In place: a field of theirs stands where one of ours will, and would be taken for it. */
  | 'reserved'
  /** Sealed under a key that no write may bring in any more. */
  | 'kid_closed'
  /** The estate has another pillar with this pid, or with this target, name and pillarenv. */
  | 'taken'
  /** An earlier document of the collection has this pid, or this target, name and pillarenv. */
  | 'twice';

export type Judgement = { id: string } & ({ record: PillarRecord } | { misfits: readonly Misfit[] });

type Found = Record<keyof AdoptFields, unknown>;

export type JudgeOptions = {
  fields: AdoptFields;
  /** The documents themselves become pillars, so nothing may stand where our fields will. */
  inPlace: boolean;
  /** Who adopts, and when: for what a document does not tell. */
  by: string;
  atMs: number;
};

/**
 * Judges a document by itself: what can be told without the estate.
 * @returns the record it would become, with tick 0, or everything that is wrong with it
 */
export function judge(document: ForeignDocument, options: JudgeOptions): Judgement {
  const id = idText(document._id);
  const found = mapFields(document, options.fields);
  const pid = isOfAnother(document, options) ? undefined : readPid(found.pid);
  const value = readValue(found.value);
  const misfits: readonly Misfit[] = [
    ...when('pid', pid === undefined),
    ...judgeTarget(found),
    ...when('name', !zPillarName.safeParse(found.name).success),
    ...when('is_secret', found.is_secret !== undefined && typeof found.is_secret !== 'boolean'),
    ...when('origin', !hasOrigin(found)),
    ...judgeValue(value, found.is_secret === true),
  ];
  if (misfits.length > 0 || pid === undefined || value === undefined) return { id, misfits };
  const record = { pid, value, ...readTarget(found), ...readOrigin(found, document._id, options) };
  return options.inPlace && hasReserved(document, record) ? { id, misfits: ['reserved'] } : { id, record };
}

/** What we have filled in ourselves, in a running estate, is no field of theirs. */
function hasReserved(document: ForeignDocument, record: PillarRecord): boolean {
  const { kid, of_master: master, value_json: text } = document;
  const { tgtType, tgtId, pillarenv, value, isSecret } = record;
  const ours = kidOf(value) ?? (isSecret ? NO_KID : undefined);
  return (
    ((kid ?? undefined) !== undefined && kid !== ours) ||
    ((master ?? undefined) !== undefined && master !== masterOf(tgtType, tgtId, pillarenv)) ||
    (text ?? undefined) !== undefined
  );
}

function readTarget(found: Found) {
  return {
    ...{ tgtType: found.tgt_type as TgtType, tgtId: found.tgt_id as string, tick: 0 },
    ...{ pillarenv: found.pillarenv as string, name: found.name as string },
    isSecret: found.is_secret === true,
  };
}

/** Null and absent are the same: not told. */
function hasOrigin({ created_by, updated_by, created_at, updated_at }: Found): boolean {
  const isText = (field: unknown) => typeof (field ?? '') === 'string';
  const isDate = (field: unknown) => (field ?? undefined) === undefined || isTime(field);
  return isText(created_by) && isText(updated_by) && isDate(created_at) && isDate(updated_at);
}

function readOrigin(found: Found, id: unknown, { by, atMs }: JudgeOptions) {
  const born = id instanceof ObjectId ? id.getTimestamp().getTime() : atMs;
  const createdBy = (found.created_by as string | null | undefined) ?? by;
  const createdAtMs = isTime(found.created_at) ? found.created_at.getTime() : born;
  return {
    ...{ createdBy, createdAtMs, updatedBy: (found.updated_by as string | null | undefined) ?? createdBy },
    updatedAtMs: isTime(found.updated_at) ? found.updated_at.getTime() : createdAtMs,
  };
}

function isTime(found: unknown): found is Date {
  return found instanceof Date && Number.isFinite(found.getTime());
}

function when(misfit: Misfit, isSo: boolean): Misfit[] {
  return isSo ? [misfit] : [];
}

/** A `pid` or `tick` of somebody else's stands where ours would. */
function isOfAnother(document: ForeignDocument, { fields, inPlace }: JudgeOptions): boolean {
  if (!inPlace) return false;
  return document.tick !== undefined || (document.pid !== undefined && fields.pid !== 'pid');
}

function readPid(found: unknown): string | undefined {
  if (found instanceof ObjectId) return found.toHexString();
  return typeof found === 'string' && /^[A-Za-z0-9_-]{1,64}$/u.test(found) ? found : undefined;
}

function readValue(found: unknown): Value | undefined {
  try {
    return readStoredValue({ value: found });
  } catch {
    return undefined;
  }
}

function judgeValue(value: Value | undefined, isSecret: boolean): Misfit[] {
  if (value === undefined) return ['value_type'];
  if (!isValue(value, { maxDepth: LIMITS.valueDepth })) return ['value_size'];
  if (isSecret) return judgeSealed(value);
  if (hasEncMarker(value) || hasNestedEncMarker(value)) return ['not_secret'];
  return canonicalBytes(value).length <= LIMITS.valueBytes ? [] : ['value_size'];
}

const [NONCE_BYTES, TAG_BYTES, WRAPPED_BYTES] = [12, 16, 48];

/** As crypto-kms reads it: one that it refuses would fail every merge of its scope. */
function judgeSealed(value: Value): Misfit[] {
  const found = zEnc.safeDecode(value as never);
  if (!found.success) return ['not_sealed'];
  const { nonce_b64, ct_b64, dek_wrap_nonce_b64, dek_wrapped_b64 } = found.data.$enc;
  const sizes = [nonce_b64, dek_wrap_nonce_b64, dek_wrapped_b64].map(bytesOf);
  const plainBytes = bytesOf(ct_b64) - TAG_BYTES;
  if (String(sizes) !== String([NONCE_BYTES, NONCE_BYTES, WRAPPED_BYTES]) || !(plainBytes >= 0))
    return ['not_sealed'];
  return plainBytes <= LIMITS.valueBytes ? [] : ['value_size'];
}

/** NaN for what is not the one way to write these bytes. */
function bytesOf(base64: string): number {
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes.length : Number.NaN;
}

function judgeTarget({ tgt_type, tgt_id, pillarenv }: Found): Misfit[] {
  if (!(TGT_TYPES as readonly unknown[]).includes(tgt_type)) return ['tgt_type'];
  // The parts of an AAD are joined with ":"; a tgt_id that holds one is never opened.
  if (typeof tgt_id !== 'string' || tgt_id.includes(':')) return ['tgt_id'];
  if (typeof pillarenv !== 'string') return ['pillarenv'];
  const fits = {
    // Another tgt_id than ours is kept: it is part of the AAD of what is sealed.
    root: () => zEnvName.safeParse(pillarenv).success,
    minion: () => isMinionEnv(tgt_id, pillarenv),
    collection: () => isCollectionEnv(tgt_id, pillarenv),
    task: () => zTaskId.safeParse(tgt_id).success && pillarenv === `task:${tgt_id}`,
    task_tpl: () => isTemplateEnv(tgt_id, pillarenv),
  } satisfies Record<TgtType, () => boolean>;
  if (tgt_type === 'collection' && pillarenv === `collection:${tgt_id}`) return ['owner'];
  return fits[tgt_type as TgtType]() ? [] : ['pillarenv'];
}

function isMinionEnv(tgtId: string, pillarenv: string): boolean {
  const env = parseEnv(pillarenv);
  if (env.kind !== 'minion' || env.minionId !== tgtId) return false;
  return zMinionId.safeParse(tgtId).success && zMasterId.safeParse(env.master).success;
}

function isCollectionEnv(tgtId: string, pillarenv: string): boolean {
  const env = parseEnv(pillarenv);
  if (env.kind !== 'collection' || env.collectionId !== tgtId) return false;
  return zCollectionId.safeParse(tgtId).success && zUserSub.safeParse(env.userSub).success;
}

function isTemplateEnv(tgtId: string, pillarenv: string): boolean {
  const prefix = taskTemplateEnv(tgtId, '');
  if (!zTemplateId.safeParse(tgtId).success || !pillarenv.startsWith(prefix)) return false;
  return zUserSub.safeParse(pillarenv.slice(prefix.length)).success;
}
