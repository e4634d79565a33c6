import { Long } from 'mongodb';
import type { ChangeKey, Clock, EstateQuery, EstateSnapshot, PillarRecord } from '../port.ts';
import { changedWithoutReading, checkForward, MAX_CHANGED, type ReadClock } from '../rules/clock.ts';
import { isAsNew, readNewestClock } from './clock.ts';
import type { Connection } from './connection.ts';
import * as documents from './documents.ts';
import { outdated } from './errors.ts';
import { listCollections } from './reads.ts';
import { toTask } from './task-documents.ts';
import { type Group, readTransaction } from './transaction.ts';

export type SnapshotReader = (query: EstateQuery) => Promise<EstateSnapshot>;

/**
 * Reads snapshots that never go back. The newest clock comes first, from the primary; when nothing else is asked for
 * and nothing happened, it is all there is to read. Everything else comes from one transaction, whose own clock must
 * be as new.
 */
export function createSnapshotReader(connection: Connection, readTimeoutMs: number): SnapshotReader {
  let seen: Clock | undefined;
  return async (query) => {
    const before = seen;
    const newest = await readNewestClock(connection);
    checkForward(before, newest);
    const snapshot = asksForRows(query)
      ? await readRows(connection, query, newest, readTimeoutMs)
      : await readClockOnly(connection, query, newest, readTimeoutMs);
    seen = snapshot.clock;
    return snapshot;
  };
}

function asksForRows({ scopes, collections, masters, minions, tasks = [] }: EstateQuery): boolean {
  return collections || [scopes, masters, minions, tasks].some((asked) => asked.length > 0);
}

async function readClockOnly(
  connection: Connection,
  query: EstateQuery,
  newest: ReadClock,
  readTimeoutMs: number,
): Promise<EstateSnapshot> {
  const changed = changedWithoutReading(newest, query.since);
  if (changed === undefined) return await readRows(connection, query, newest, readTimeoutMs);
  const { incarnation, tick } = newest;
  const none = { scopes: new Map(), masters: new Map(), minions: new Map(), tasks: new Map() };
  return { clock: { incarnation, tick }, changed, collections: undefined, ...none };
}

async function readRows(
  connection: Connection,
  query: EstateQuery,
  newest: ReadClock,
  readTimeoutMs: number,
): Promise<EstateSnapshot> {
  return await readTransaction(connection, performance.now() + readTimeoutMs, async (group) => {
    if (!isAsNew(group.clock, newest)) throw outdated();
    return await readSnapshot(group, query);
  });
}

/** One query per kind of record, one after the other: a transaction takes no two at once. */
async function readSnapshot(group: Group, query: EstateQuery): Promise<EstateSnapshot> {
  const { tables, within, clock } = group;
  const { incarnation, tick } = clock;
  return {
    clock: { incarnation, tick },
    changed: await readChanged(group, query.since),
    scopes: await readScopes(group, query.scopes),
    collections: query.collections ? await listCollections(tables, within) : undefined,
    masters: await readMasters(group, query.masters),
    minions: await readMinions(group, query.minions),
    tasks: await readTasks(group, query.tasks ?? []),
  };
}

async function readChanged(
  { tables, within, clock }: Group,
  since: Clock | undefined,
): Promise<EstateSnapshot['changed']> {
  const known = changedWithoutReading(clock, since);
  if (since === undefined || known !== undefined) return known ?? 'all';
  const after = { tick: { $gt: Long.fromNumber(since.tick) } };
  const found = await tables.changes.find(after, within).toArray();
  const keys = new Set(found.flatMap((change) => change.keys));
  return keys.size > MAX_CHANGED ? 'all' : ([...keys] as ChangeKey[]);
}

async function readScopes({ tables, within }: Group, scopes: readonly string[]) {
  const byScope = new Map(scopes.map((scope): [string, PillarRecord[]] => [scope, []]));
  if (scopes.length === 0) return byScope;
  const options = { ...within, sort: { pillarenv: 1, name: 1, pid: 1 } } as const;
  const found = tables.pillars.find({ pillarenv: { $in: [...scopes] } }, options);
  for (const document of await found.toArray()) {
    byScope.get(document.pillarenv)?.push(documents.toPillar(document));
  }
  return byScope;
}

async function readMasters({ tables, within }: Group, ids: readonly string[]) {
  const masters: [string, ReturnType<typeof documents.toMaster> | undefined][] = [];
  if (ids.length === 0) return new Map(masters);
  const found = await tables.masters.find({ _id: { $in: [...ids] } }, within).toArray();
  const byId = new Map(found.map((document) => [document._id, documents.toMaster(document)]));
  return new Map(ids.map((id) => [id, byId.get(id)]));
}

async function readTasks({ tables, within }: Group, ids: readonly string[]) {
  if (ids.length === 0) return new Map<string, ReturnType<typeof toTask> | undefined>();
  const found = await tables.tasks.find({ _id: { $in: [...ids] } }, within).toArray();
  const byId = new Map(found.map((document) => [document._id, toTask(document)]));
  return new Map(ids.map((id) => [id, byId.get(id)]));
}

async function readMinions({ tables, within }: Group, minions: EstateQuery['minions']) {
  const keys = minions.map(({ master, id }) => documents.minionKey(master, id));
  if (keys.length === 0) return new Map<string, ReturnType<typeof documents.toMinion> | undefined>();
  const found = await tables.minions.find({ _id: { $in: keys } }, within).toArray();
  const byKey = new Map(found.map((document) => [document._id, documents.toMinion(document)]));
  return new Map(keys.map((key) => [key, byKey.get(key)]));
}
