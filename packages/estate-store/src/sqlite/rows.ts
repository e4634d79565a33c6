import type { ScopedRole, TgtType } from '@colonnade/contracts';
import { canonicalText, fromPlain, parseValue, toPlain, type Value } from '@colonnade/value';
import type {
  ApiTokenRecord,
  CollectionRecord,
  MasterRecord,
  MinionRecord,
  OutboxRow,
  PillarRecord,
  Role,
} from '../port.ts';
import type { PillarVersion, VersionMark, VersionOp } from '../port-history.ts';
import type { Db } from './connection.ts';

/** Rows as the tables hold them, and their way to records. Values are canonical text, lists JSON text. */

export type PillarRow = {
  pid: string;
  tgt_type: string;
  tgt_id: string;
  name: string;
  pillarenv: string;
  value: string;
  is_secret: number;
  created_by: string;
  updated_by: string;
  created_at_ms: number;
  updated_at_ms: number;
  tick: number;
};

/** In the order of both pillar tables; `tick` stands apart, since it is not copied into a version. */
export const PILLAR_FIELDS =
  'pid, tgt_type, tgt_id, name, pillarenv, value, is_secret, created_by, updated_by, created_at_ms, updated_at_ms';

/** What was canonical when it was written is not held to the limits of today. */
export function readValue(text: string): Value {
  return parseValue(text, { maxDepth: 512 });
}

export function toPillar(row: PillarRow): PillarRecord {
  return {
    pid: row.pid,
    tgtType: row.tgt_type as TgtType,
    tgtId: row.tgt_id,
    pillarenv: row.pillarenv,
    name: row.name,
    value: readValue(row.value),
    isSecret: row.is_secret === 1,
    createdBy: row.created_by,
    updatedBy: row.updated_by,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    tick: row.tick,
  };
}

export type VersionRow = PillarRow & { op: VersionOp; purged: number };

export function toVersion(row: VersionRow): PillarVersion {
  return { ...toPillar(row), op: row.op, purged: row.purged === 1 };
}

export type MarkRow = Omit<VersionRow, 'value' | 'created_by' | 'updated_by' | 'created_at_ms'>;

export function toMark(row: MarkRow): VersionMark {
  const { pid, tick, op, pillarenv, name, updated_at_ms: updatedAtMs } = row;
  const { tgt_type: tgtType, tgt_id: tgtId } = row;
  return {
    ...{ pid, tick, op, tgtType: tgtType as TgtType, tgtId, pillarenv, name, updatedAtMs },
    ...{ purged: row.purged === 1, isSecret: row.is_secret === 1 },
  };
}

export type CollectionRow = {
  id: string;
  name: string;
  parent_id: string | null;
  owner: string;
  tick: number;
  rule: string | null;
};

export function toCollection(row: CollectionRow): CollectionRecord {
  return {
    id: row.id,
    name: row.name,
    parentId: row.parent_id ?? undefined,
    owner: row.owner,
    ...(row.rule === null ? {} : { rule: row.rule }),
    tick: row.tick,
  };
}

export type MasterRow = {
  id: string;
  envs: string;
  token_ids: string;
  on_unknown_minion: string;
  tick: number;
};

export function toMaster(row: MasterRow): MasterRecord {
  return {
    id: row.id,
    envs: readList(row.envs),
    tokenIds: readList(row.token_ids),
    onUnknownMinion: row.on_unknown_minion as MasterRecord['onUnknownMinion'],
    tick: row.tick,
  };
}

/** `collections` is a JSON list in the order of the memberships. */
export type MinionRow = {
  master: string;
  id: string;
  registered_by: string;
  tick: number;
  collections: string;
  by_rule: string;
};

/** Selects MinionRow; a condition may follow. */
export const SELECT_MINION = `
  SELECT m.master, m.id, m.registered_by, m.tick, (
    SELECT json_group_array(c.collection_id ORDER BY c.position)
    FROM minion_collections c WHERE c.master = m.master AND c.minion_id = m.id
  ) AS collections, (
    SELECT json_group_array(c.collection_id ORDER BY c.position)
    FROM minion_collections c WHERE c.master = m.master AND c.minion_id = m.id AND c.by_rule = 1
  ) AS by_rule
  FROM minions m`;

/** Of a minion that has none in the table. */
export function insertMemberships(
  db: Pick<Db, 'run'>,
  { master, id, collections, byRule = [] }: Pick<MinionRecord, 'master' | 'id' | 'collections' | 'byRule'>,
): void {
  for (const [position, collection] of collections.entries()) {
    db.run(
      `INSERT INTO minion_collections (master, minion_id, position, collection_id, by_rule)
       VALUES (?, ?, ?, ?, ?)`,
      ...[master, id, position, collection, byRule.includes(collection) ? 1 : 0],
    );
  }
}

export function toMinion(row: MinionRow): MinionRecord {
  return {
    master: row.master,
    id: row.id,
    collections: readList(row.collections),
    ...(row.by_rule === '[]' ? {} : { byRule: readList(row.by_rule) }),
    registeredBy: row.registered_by,
    tick: row.tick,
  };
}

export type TokenRow = {
  id: string;
  hash: string;
  sub: string;
  roles: string;
  scoped_roles: string;
  created_at_ms: number;
  expires_at_ms: number | null;
  last_used_at_ms: number | null;
  tick: number;
};

export function toToken(row: TokenRow): ApiTokenRecord {
  return {
    id: row.id,
    hash: row.hash,
    sub: row.sub,
    roles: readList(row.roles) as readonly Role[],
    scopedRoles: toPlain(readValue(row.scoped_roles)) as readonly ScopedRole[],
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
    tick: row.tick,
  };
}

/** Writes a token's whole row. */
export const WRITE_TOKEN = `INSERT OR REPLACE INTO tokens
  (id, hash, sub, roles, scoped_roles, created_at_ms, expires_at_ms, last_used_at_ms, tick)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** The parameters of WRITE_TOKEN. */
export function tokenColumns(token: ApiTokenRecord): (string | number | null)[] {
  const { id, hash, sub, roles, createdAtMs, tick } = token;
  const scopedRoles = canonicalText(fromPlain([...token.scopedRoles]));
  const { expiresAtMs = null, lastUsedAtMs = null } = token;
  return [id, hash, sub, writeList(roles), scopedRoles, createdAtMs, expiresAtMs, lastUsedAtMs, tick];
}

export type OutboxTableRow = {
  tick: number;
  idx: number;
  time_ms: number;
  type: string;
  subject: string;
  data: string;
};

export function toOutboxRow(row: OutboxTableRow): OutboxRow {
  return {
    tick: row.tick,
    index: row.idx,
    timeMs: row.time_ms,
    type: row.type,
    subject: row.subject,
    data: readValue(row.data),
  };
}

/** An answer kept for a repeated request. */
export type AnswerRow = {
  scope: string;
  fingerprint: string;
  response: string;
  tick: number;
  expires_at_ms: number;
};

export function writeList(items: readonly string[]): string {
  return canonicalText([...items]);
}

export function readList(text: string): readonly string[] {
  return readValue(text) as string[];
}
