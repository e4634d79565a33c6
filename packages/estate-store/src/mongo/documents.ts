import type { ScopedRole, TgtType } from '@colonnade/contracts';
import { parseValue, type Value } from '@colonnade/value';
import { type Double, type Int32, Long, ObjectId } from 'mongodb';
import type {
  ApiTokenRecord,
  CollectionRecord,
  MasterRecord,
  MinionRecord,
  OutboxRow,
  PillarRecord,
  Role,
} from '../port.ts';
import type { PillarVersion, VersionMark } from '../port-history.ts';
import { masterOf } from '../rules/pillar-target.ts';
import { readStoredValue, type StoredValue } from './stored-value.ts';

/** Documents as the collections hold them, and their way to records and back. Ticks are int64, times dates. */

/**
 * A pillar; the fields up to `created_by` are those seed 000 names, the rest is ours. Another program may have
 * written it without what is ours, until it is adopted.
 */
export type PillarDocument = StoredValue & {
  _id: ObjectId;
  tgt_type: string;
  tgt_id: string;
  name: string;
  pillarenv: string;
  is_secret: boolean;
  created_by: string;
  updated_by: string;
  created_at: Date;
  updated_at: Date;
  pid: string;
  tick: Long;
  /** Of a minion's pillar: its master. It only serves to be looked for. */
  of_master?: string;
};

/** Of a purged version everything is kept but its value, which is null. */
export type VersionDocument = PillarDocument & { op: PillarVersion['op']; purged: boolean };

/** Read with `promoteValues: false`, so that the kinds of numbers are seen. */
export function toPillar(found: Partial<PillarDocument>): PillarRecord {
  const document = found as Partial<PillarDocument> & { value?: unknown; value_json?: unknown };
  const createdAtMs = document.created_at?.getTime() ?? 0;
  const createdBy = document.created_by ?? '';
  return {
    pid: document.pid ?? String(document._id),
    tgtType: document.tgt_type as TgtType,
    tgtId: document.tgt_id as string,
    pillarenv: document.pillarenv as string,
    name: document.name as string,
    value: readStoredValue(document),
    isSecret: document.is_secret === true,
    createdBy,
    updatedBy: document.updated_by ?? createdBy,
    createdAtMs,
    updatedAtMs: document.updated_at?.getTime() ?? createdAtMs,
    tick: toNumber(document.tick ?? 0),
  };
}

export function toVersion(document: VersionDocument): PillarVersion {
  return { ...toPillar(document), op: document.op, purged: document.purged };
}

/** Read without its value. */
export function toMark(document: Partial<VersionDocument>): VersionMark {
  const { pid, tick, op, tgtType, tgtId, pillarenv, name, isSecret, updatedAtMs } = toVersion({
    value: null,
    ...document,
  } as VersionDocument);
  const place = { tgtType, tgtId, pillarenv, name };
  return { pid, tick, op, ...place, isSecret, updatedAtMs, purged: document.purged === true };
}

export function fromPillar(record: Omit<PillarRecord, 'value'>, value: StoredValue): PillarDocument {
  const master = masterOf(record.tgtType, record.tgtId, record.pillarenv);
  return {
    _id: new ObjectId(),
    tgt_type: record.tgtType,
    tgt_id: record.tgtId,
    name: record.name,
    pillarenv: record.pillarenv,
    ...value,
    is_secret: record.isSecret,
    created_by: record.createdBy,
    updated_by: record.updatedBy,
    created_at: new Date(record.createdAtMs),
    updated_at: new Date(record.updatedAtMs),
    pid: record.pid,
    tick: Long.fromNumber(record.tick),
    ...(master === undefined ? {} : { of_master: master }),
  };
}

export type CollectionDocument = {
  _id: string;
  name: string;
  parent_id: string | null;
  owner: string;
  /** Not there: no rule. */
  rule?: string;
  tick: Long;
};

export function toCollection(document: CollectionDocument): CollectionRecord {
  const { _id: id, name, parent_id: parentId, owner, rule, tick } = document;
  const ruled = rule === undefined ? {} : { rule };
  return { id, name, parentId: parentId ?? undefined, owner, ...ruled, tick: toNumber(tick) };
}

export function fromCollection(record: CollectionRecord): CollectionDocument {
  const { id, name, parentId, owner, rule, tick } = record;
  const ruled = rule === undefined ? {} : { rule };
  return { _id: id, name, parent_id: parentId ?? null, owner, ...ruled, tick: Long.fromNumber(tick) };
}

export type MasterDocument = {
  _id: string;
  envs: readonly string[];
  token_ids: readonly string[];
  on_unknown_minion: MasterRecord['onUnknownMinion'];
  tick: Long;
};

export function toMaster(document: MasterDocument): MasterRecord {
  const { _id: id, envs, token_ids: tokenIds, on_unknown_minion: onUnknownMinion, tick } = document;
  return { id, envs, tokenIds, onUnknownMinion, tick: toNumber(tick) };
}

export function fromMaster({ id, envs, tokenIds, onUnknownMinion, tick }: MasterRecord): MasterDocument {
  return {
    _id: id,
    envs: [...envs],
    token_ids: [...tokenIds],
    on_unknown_minion: onUnknownMinion,
    tick: Long.fromNumber(tick),
  };
}

/** `_id` is `master/id`, and neither holds a slash. */
export type MinionDocument = {
  _id: string;
  master: string;
  id: string;
  collections: readonly string[];
  /** Not there: none of them is by rule. */
  by_rule?: readonly string[];
  registered_by: string;
  tick: Long;
};

export const minionKey = (master: string, id: string) => `${master}/${id}`;

export function toMinion(document: MinionDocument): MinionRecord {
  const { master, id, collections, by_rule: byRule, registered_by: registeredBy, tick } = document;
  const ruled = byRule === undefined ? {} : { byRule };
  return { master, id, collections, ...ruled, registeredBy, tick: toNumber(tick) };
}

export function fromMinion(record: MinionRecord): MinionDocument {
  const { master, id, collections, byRule, registeredBy, tick } = record;
  return {
    _id: minionKey(master, id),
    master,
    id,
    collections: [...collections],
    ...(byRule === undefined ? {} : { by_rule: [...byRule] }),
    registered_by: registeredBy,
    tick: Long.fromNumber(tick),
  };
}

export type TokenDocument = {
  _id: string;
  hash: string;
  sub: string;
  roles: readonly Role[];
  /** Missing in documents of earlier versions. */
  scoped_roles?: readonly ScopedRole[];
  created_at: Date;
  expires_at: Date | null;
  last_used_at?: Date | null;
  tick: Long;
};

export function toToken(document: TokenDocument): ApiTokenRecord {
  const { _id: id, hash, sub, roles, tick } = document;
  return {
    ...{ id, hash, sub, roles },
    createdAtMs: document.created_at.getTime(),
    scopedRoles: document.scoped_roles ?? [],
    expiresAtMs: document.expires_at?.getTime(),
    lastUsedAtMs: document.last_used_at?.getTime(),
    tick: toNumber(tick),
  };
}

export function fromToken(record: ApiTokenRecord): TokenDocument {
  const { id, hash, sub, roles, createdAtMs, expiresAtMs, lastUsedAtMs, tick } = record;
  return {
    ...{ _id: id, hash, sub, roles: [...roles], scoped_roles: [...record.scopedRoles] },
    created_at: new Date(createdAtMs),
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs),
    last_used_at: lastUsedAtMs === undefined ? null : new Date(lastUsedAtMs),
    tick: Long.fromNumber(tick),
  };
}

/** `data` is canonical text: nobody else reads it. */
export type OutboxDocument = {
  _id: ObjectId;
  tick: Long;
  index: number;
  time: Date;
  type: string;
  subject: string;
  data: string;
};

export function toOutboxRow({ tick, index, time, type, subject, data }: OutboxDocument): OutboxRow {
  return { type, subject, data: readText(data), tick: toNumber(tick), index, timeMs: time.getTime() };
}

/** An answer kept for a repeated request; the server removes it after it expired. */
export type AnswerDocument = {
  _id: string;
  fingerprint: string;
  response: string;
  tick: Long;
  expires_at: Date;
};

export type LeaseDocument = { _id: string; holder: string; fence: number; expires_at: Date; drops?: number };

/** The keys a tick changed. */
export type ChangeDocument = { _id: ObjectId; tick: Long; keys: readonly string[] };

/** What was canonical when it was written is not held to the limits of today. */
export function readText(text: string): Value {
  return parseValue(text, { maxDepth: 512 });
}

/** The number, whichever of its BSON types the driver gives for it. */
export function toNumber(found: Long | Int32 | Double | number): number {
  if (typeof found === 'number') return found;
  return found instanceof Long ? found.toNumber() : found.value;
}
