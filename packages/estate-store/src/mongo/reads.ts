import { LIMITS, type TgtType } from '@colonnade/contracts';
import { type Document, Long } from 'mongodb';
import type {
  CollectionRecord,
  EstateStore,
  MasterRecord,
  MinionFilter,
  MinionRecord,
  OutboxRow,
  Page,
  PillarFilter,
  PillarRecord,
} from '../port.ts';
import type { HistoryFloor, PillarVersion, ScopeHistory } from '../port-history.ts';
import { checkLimit, cutPage, minionCursor, readMinionCursor } from '../rules/page.ts';
import type { HistoryDocument, Tables } from './connection.ts';
import * as documents from './documents.ts';
import { INDEX } from './schema.ts';
import type { Group } from './transaction.ts';

/**
 * The queries. Where a filter does not pick its index by itself, they name it; `within` is the session and the time limit of all of them. Only those
 * of one query are used outside a transaction, so each of them is of one moment.
 */

type PageAsk = Parameters<EstateStore['listPillars']>[1];
type Within = object;

export async function readPillar(tables: Tables, within: Within, pid: string) {
  const found = await tables.pillars.findOne({ pid }, within);
  return found === null ? undefined : documents.toPillar(found);
}

export async function findPillar(
  tables: Tables,
  within: Within,
  ...[tgtType, tgtId, name, pillarenv]: [TgtType, string, string, string]
): Promise<PillarRecord | undefined> {
  const key = { tgt_type: tgtType, tgt_id: tgtId, name, pillarenv };
  const found = await tables.pillars.findOne(key, within);
  return found === null ? undefined : documents.toPillar(found);
}

/** Pillars that another program wrote and nobody adopted have no pid, and are not listed. */
export async function listPillars(
  tables: Tables,
  within: Within,
  filter: PillarFilter,
  page: PageAsk,
): Promise<Page<PillarRecord>> {
  checkLimit(page.limit);
  const { tgtTypes, tgtId, pillarenv, name, master } = filter;
  const wanted: Document = { pid: { $gt: page.after ?? '' }, tgt_type: { $in: [...tgtTypes] } };
  for (const [field, value] of Object.entries({ tgt_id: tgtId, pillarenv, name, of_master: master })) {
    if (value !== undefined) wanted[field] = value;
  }
  const options = { ...within, hint: listIndex(filter), sort: { pid: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.pillars.find(wanted, options).toArray();
  return cutPage(found.map(documents.toPillar), page.limit, ({ pid }) => pid);
}

/** What names a scope or a target finds few pillars, which are then sorted; the others are read in their order. */
function listIndex({ tgtId, pillarenv, name, master }: PillarFilter) {
  if (pillarenv !== undefined) return INDEX.pillarEnv;
  if (tgtId !== undefined) return INDEX.pillarKey;
  if (master !== undefined) return INDEX.pillarMaster;
  return name === undefined ? INDEX.pillarPid : INDEX.pillarName;
}

export async function listVersions(
  tables: Tables,
  within: Within,
  pid: string,
  page: { after: number; limit: number } = { after: 0, limit: 0 },
): Promise<PillarVersion[]> {
  const wanted = { pid, tick: { $gt: Long.fromNumber(page.after) } };
  const options = { ...within, sort: { tick: 1 }, limit: page.limit } as const;
  return (await tables.versions.find(wanted, options).toArray()).map(documents.toVersion);
}

export async function getVersion(
  tables: Tables,
  within: Within,
  pid: string,
  tick?: number,
): Promise<PillarVersion | undefined> {
  const wanted = { pid, ...(tick === undefined ? {} : { tick: Long.fromNumber(tick) }) };
  const found = await tables.versions.findOne(wanted, { ...within, hint: INDEX.version, sort: { tick: -1 } });
  return found === null ? undefined : documents.toVersion(found);
}

export async function readHistoryFloor(tables: Tables, within: Within): Promise<HistoryFloor> {
  const found = (await tables.meta.findOne({ _id: 'history' }, within)) as HistoryDocument | null;
  if (found === null) return { tick: 0, atMs: 0 };
  return { tick: documents.toNumber(found.floor), atMs: found.floor_at.getTime() };
}

/** Pids whose versions are asked for at once. */
const PIDS_AT_ONCE = 500;

/** Belongs into a transaction: it reads several times. Values are left out: they would be read whole for nothing. */
export async function readScopeHistory(
  { tables, within, clock }: Pick<Group, 'tables' | 'within' | 'clock'>,
  pillarenv: string,
  { pids: only, limit }: { pids: readonly string[] | undefined; limit: number },
): Promise<ScopeHistory> {
  const { incarnation, tick } = clock;
  const historyFloor = await readHistoryFloor(tables, within);
  const read = (
    wanted: Document,
    fields: readonly string[],
    hint: Readonly<Record<string, 1>>,
    max: number,
  ) => {
    const projection = { _id: 0, ...Object.fromEntries(fields.map((field) => [field, 1])) };
    return tables.versions
      .find(wanted, { ...within, hint, projection, sort: hint, limit: max + 1 })
      .toArray();
  };
  const inScope = { pillarenv, ...(only === undefined ? {} : { pid: { $in: [...only] } }) };
  const stood = await read(inScope, ['pid'], INDEX.versionEnv, limit);
  const pids = [...new Set(stood.map(({ pid }) => pid))];
  const found: Partial<documents.VersionDocument>[] = [];
  for (let from = 0; from < pids.length && found.length <= limit; from += PIDS_AT_ONCE) {
    const wanted = { pid: { $in: pids.slice(from, from + PIDS_AT_ONCE) } };
    found.push(...(await read(wanted, MARK_FIELDS, INDEX.version, limit - found.length)));
  }
  const isWhole = stood.length <= limit && found.length <= limit;
  return {
    clock: { incarnation, tick },
    historyFloor,
    marks: isWhole ? found.map(documents.toMark) : undefined,
  };
}

const MARK_FIELDS = [
  ...['pid', 'tick', 'op', 'purged', 'tgt_type', 'tgt_id', 'pillarenv', 'name', 'is_secret', 'updated_at'],
];

export async function readCollection(tables: Tables, within: Within, id: string) {
  const found = await tables.collections.findOne({ _id: id }, within);
  return found === null ? undefined : documents.toCollection(found);
}

export async function listCollections(tables: Tables, within: Within): Promise<CollectionRecord[]> {
  return (await tables.collections.find({}, inOrder(within)).toArray()).map(documents.toCollection);
}

/** Belongs into a transaction: it climbs from query to query. */
export async function readBranch(tables: Tables, within: Within, id: string): Promise<CollectionRecord[]> {
  const branch: CollectionRecord[] = [];
  for (let at: string | undefined = id; at !== undefined && branch.length <= LIMITS.collectionDepth; ) {
    const found: CollectionRecord | undefined = await readCollection(tables, within, at);
    if (found !== undefined) branch.unshift(found);
    at = found?.parentId;
  }
  return branch;
}

export async function readMaster(tables: Tables, within: Within, id: string) {
  const found = await tables.masters.findOne({ _id: id }, within);
  return found === null ? undefined : documents.toMaster(found);
}

export async function listMasters(tables: Tables, within: Within): Promise<MasterRecord[]> {
  return (await tables.masters.find({}, inOrder(within)).toArray()).map(documents.toMaster);
}

export async function readMinion(tables: Tables, within: Within, master: string, id: string) {
  const found = await tables.minions.findOne({ _id: documents.minionKey(master, id) }, within);
  return found === null ? undefined : documents.toMinion(found);
}

/** Ordered by master and id. */
export async function listMinions(
  tables: Tables,
  within: Within,
  filter: MinionFilter,
  page: PageAsk,
): Promise<Page<MinionRecord>> {
  checkLimit(page.limit);
  const { master, id } = readMinionCursor(page.after);
  const wanted: Document = {
    master: { $gte: master },
    $or: [{ master: { $gt: master } }, { master, id: { $gt: id } }],
  };
  if (filter.master !== undefined) wanted.master = { $gte: master, $eq: filter.master };
  if (filter.collections !== undefined) wanted.collections = { $in: filter.collections };
  const hint = filter.collections === undefined ? INDEX.minion : INDEX.minionCollections;
  const options = { ...within, hint, sort: { master: 1, id: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.minions.find(wanted, options).toArray();
  return cutPage(found.map(documents.toMinion), page.limit, minionCursor);
}

export async function readToken(tables: Tables, within: Within, id: string) {
  const found = await tables.tokens.findOne({ _id: id }, within);
  return found === null ? undefined : documents.toToken(found);
}

export async function listTokens(tables: Tables, within: Within) {
  return (await tables.tokens.find({}, inOrder(within)).toArray()).map(documents.toToken);
}

export async function findIdempotent(tables: Tables, within: Within, scope: string, nowMs: number) {
  const kept = await tables.answers.findOne({ _id: scope }, within);
  if (kept === null || kept.expires_at.getTime() <= nowMs) return undefined;
  const { fingerprint, response, tick } = kept;
  return { fingerprint, response: documents.readText(response), tick: documents.toNumber(tick) };
}

export async function readOutbox(tables: Tables, within: Within, limit: number): Promise<OutboxRow[]> {
  const options = { ...within, sort: { tick: 1, index: 1 }, limit } as const;
  return (await tables.outbox.find({}, options).toArray()).map(documents.toOutboxRow);
}

function inOrder(within: Within) {
  return { ...within, hint: INDEX.id, sort: { _id: 1 } } as const;
}
