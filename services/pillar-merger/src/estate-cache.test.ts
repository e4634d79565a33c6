import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { ColonnadeError, collectionTarget, minionTarget, rootTarget, startCall } from '@colonnade/contracts';
import {
  type EstateQuery,
  type EstateReader,
  type EstateStore,
  type Mutation,
  openSqliteReader,
  openSqliteStore,
} from '@colonnade/estate-store';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { createEstateCache, type EstateCache } from './estate-cache.ts';
import { planMerge } from './plan.ts';

let dir: TempDir;
let store: EstateStore;
const readers: EstateReader[] = [];
const MINIONS = ['web-1', 'web-2', 'db-1'];
const COLLECTIONS = ['c1', 'c2', 'c3', 'c4', 'c5'];

const call = (ms = 5000) => startCall(ms);
const write = async (...mutations: Mutation[]) =>
  (await store.write({ mutations, events: [], by: 'test', atMs: Date.now() })).clock.tick;
const collection = (id: string, parentId?: string): Mutation => ({
  kind: 'collection.put',
  expect: undefined,
  record: { id, name: id, parentId, owner: 'ann' },
});
const minion = (id: string, collections: string[]): Mutation => ({
  kind: 'minion.put',
  expect: undefined,
  record: { master: 'm1', id, collections, registeredBy: 't' },
});

before(async () => {
  dir = await tempDir('estate-cache');
  store = await openSqliteStore({ path: `${dir.path}/estate.sqlite` });
  await write({
    kind: 'master.put',
    expect: 'absent',
    record: { id: 'm1', envs: [], tokenIds: [], onUnknownMinion: 'refuse' },
  });
  for (const id of COLLECTIONS) await write({ ...collection(id), expect: 'absent' } as Mutation);
  for (const id of MINIONS) await write({ ...minion(id, []), expect: 'absent' } as Mutation);
});
after(async () => {
  for (const reader of readers) await reader[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

/** A cache on a connection of its own, with a count of what it reads. */
async function openCache(more: Partial<Parameters<typeof createEstateCache>[0]> = {}) {
  const reader = await openSqliteReader({ path: `${dir.path}/estate.sqlite` });
  readers.push(reader);
  const queries: EstateQuery[] = [];
  const snapshot = (query: EstateQuery) => {
    queries.push(query);
    return reader.snapshot(query);
  };
  const cache = createEstateCache({
    reader: { snapshot },
    mode: 'on',
    maxBytes: 1e6,
    readTimeoutMs: 1000,
    ...more,
  });
  return { cache, queries };
}

async function mergedOf(cache: EstateCache, minionId: string): Promise<Map<string, unknown>> {
  const request = { master: 'm1', minionId, pillarenv: 'auto', tokenId: undefined };
  const { result } = await cache.read(call(), (view) => planMerge(view, request, 'entitled'));
  assert.equal(result.kind, 'merged');
  if (result.kind !== 'merged') throw new Error('unreachable');
  return new Map([...result.merged].map(([name, { winner }]) => [name, winner.value]));
}

/** The same, computed without any cache from the store's own lists. */
async function truthOf(minionId: string): Promise<Map<string, unknown>> {
  const record = await store.getMinion('m1', minionId);
  const branches = await Promise.all((record?.collections ?? []).map((id) => store.getBranch(id)));
  const scopes = [
    'base',
    ...branches.flat().map((c) => `collection:${c.id};user:${c.owner}`),
    `minion_id:${minionId};master:m1`,
  ];
  const result = new Map<string, unknown>();
  for (const pillarenv of scopes) {
    const page = await store.listPillars(
      { tgtTypes: ['root', 'collection', 'minion'], pillarenv },
      { after: undefined, limit: 500 },
    );
    for (const row of page.rows) result.set(row.name, row.value);
  }
  return result;
}

/** A small generator of numbers, so that a failure can be seen again. */
function createDice(seed: number) {
  let state = seed;
  const roll = (sides: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
  const pick = <T>(items: readonly T[]): T => items[roll(items.length)] as T;
  return { roll, pick };
}

test('1,000 writes, each followed by a merge on one of two caches: none is stale', async () => {
  const { roll, pick } = createDice(7);
  const caches = [await openCache(), await openCache()];
  const pids: string[] = [];
  const targets = [
    rootTarget,
    ...COLLECTIONS.map((id) => collectionTarget(id, 'ann')),
    ...MINIONS.map((id) => minionTarget(id, 'm1')),
  ];
  const writeSomething = async (value: bigint): Promise<void> => {
    const kind = roll(10);
    if (kind < 4 && pids.length > 0) {
      await write({ kind: 'pillar.update', pid: pick(pids), expectTick: undefined, value, isSecret: false });
    } else if (kind < 6) {
      const pid = randomUUID();
      const name = `k${roll(4)}`;
      const made = await write({
        kind: 'pillar.create',
        record: { pid, ...pick(targets), name, value, isSecret: false },
      }).catch(() => 0);
      if (made > 0) pids.push(pid);
    } else if (kind < 7 && pids.length > 5) {
      const [pid] = pids.splice(roll(pids.length), 1);
      await write({ kind: 'pillar.delete', pid: pid as string, expectTick: undefined });
    } else if (kind < 9) {
      // A move below itself is refused; then the estate is as it was.
      await write(collection(pick(COLLECTIONS), roll(4) === 0 ? undefined : pick(COLLECTIONS))).catch(
        () => 0,
      );
    } else {
      const first = pick(COLLECTIONS);
      await write(minion(pick(MINIONS), [...new Set([first, pick(COLLECTIONS)])]));
    }
  };
  for (let i = 0; i < 1000; i++) {
    await writeSomething(BigInt(i));
    const minionId = pick(MINIONS);
    const truth = await truthOf(minionId);
    for (const { cache } of roll(2) === 0 ? caches : caches.toReversed()) {
      assert.deepEqual(await mergedOf(cache, minionId), truth, `after write ${i}`);
    }
  }
});

test('without changes a merge costs one read that fetches nothing', async () => {
  const { cache, queries } = await openCache();
  await mergedOf(cache, 'web-1');
  queries.length = 0;
  await mergedOf(cache, 'web-1');
  assert.equal(queries.length, 1);
  const [{ scopes, masters, minions, collections } = assert.fail()] = queries;
  assert.deepEqual(
    { scopes, masters, minions, collections },
    { scopes: [], masters: [], minions: [], collections: false },
  );
});

test('a wave of merges shares a read, and one that comes during a read waits for the next', async () => {
  const { cache, queries } = await openCache();
  await Promise.all(MINIONS.map((id) => mergedOf(cache, id)));
  queries.length = 0;
  await Promise.all(Array.from({ length: 50 }, (_, i) => mergedOf(cache, MINIONS[i % 3] as string)));
  assert.equal(queries.length, 1);
});

test('a read that began before a write is not used for a merge that began after it', async () => {
  const reader = await openSqliteReader({ path: `${dir.path}/estate.sqlite` });
  readers.push(reader);
  const gate = Promise.withResolvers<void>();
  let reads = 0;
  // The first answer is what the store said before the write, and arrives after it.
  const snapshot = async (query: EstateQuery) => {
    const first = reads++ === 0;
    const answer = await reader.snapshot(query);
    if (first) await gate.promise;
    return answer;
  };
  const cache = createEstateCache({ reader: { snapshot }, mode: 'on', maxBytes: 1e6, readTimeoutMs: 5000 });
  const early = cache.refresh(call());
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  const tick = await write(minion('web-1', []));
  const late = cache.read(call(), (view) => view.minion('m1', 'web-1')?.tick);
  gate.resolve();
  assert.ok((await early).tick < tick);
  assert.equal((await late).result, tick);
});

test('memory is bounded, and a merge larger than the bound still works', async () => {
  const { cache } = await openCache({ maxBytes: 2000 });
  for (let i = 0; i < 50; i++) {
    await cache.read(call(), (view) => view.minion('m1', `unknown-${i}`));
    assert.ok(cache.bytes < 2600, String(cache.bytes));
  }
  const { cache: tiny } = await openCache({ maxBytes: 0 });
  assert.deepEqual(await mergedOf(tiny, 'web-1'), await truthOf('web-1'));
});

test('with the cache off everything is read each time', async () => {
  const { cache, queries } = await openCache({ mode: 'off' });
  await mergedOf(cache, 'web-1');
  for (let i = 0; i < 3; i++) {
    queries.length = 0;
    await mergedOf(cache, 'web-1');
    const last = queries.at(-1);
    assert.equal(last?.since, undefined);
    assert.ok(last?.collections && last.masters.length === 1 && last.minions.length === 1);
    assert.ok(last.scopes.includes('base') && last.scopes.includes('minion_id:web-1;master:m1'));
  }
});

test('a store that is away, or too slow, is unavailable, and comes back', async () => {
  let mode: 'away' | 'slow' | 'here' = 'away';
  const reader = await openSqliteReader({ path: `${dir.path}/estate.sqlite` });
  readers.push(reader);
  const snapshot = async (query: EstateQuery) => {
    if (mode === 'away') throw new ColonnadeError('unavailable', 'away');
    if (mode === 'slow') await new Promise(() => {});
    return reader.snapshot(query);
  };
  const cache = createEstateCache({ reader: { snapshot }, mode: 'on', maxBytes: 1e6, readTimeoutMs: 50 });
  const isUnavailable = (thrown: unknown) =>
    thrown instanceof ColonnadeError && thrown.code === 'unavailable';
  await assert.rejects(mergedOf(cache, 'web-1'), isUnavailable);
  mode = 'slow';
  await assert.rejects(mergedOf(cache, 'web-1'), isUnavailable);
  mode = 'here';
  assert.deepEqual(await mergedOf(cache, 'web-1'), await truthOf('web-1'));
});

test('after a restore nothing cached is used', async () => {
  const { cache } = await openCache();
  const before = await cache.read(call(), (view) => view.tree());
  await store[Symbol.asyncDispose]();
  store = await openSqliteStore({ path: `${dir.path}/estate.sqlite`, newIncarnation: true });
  const after = await cache.read(call(), (view) => view.tree());
  assert.notEqual(after.clock.incarnation, before.clock.incarnation);
  assert.notEqual(after.result, before.result);
});
