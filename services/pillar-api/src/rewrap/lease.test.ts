import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { rootTarget } from '@colonnade/contracts';
import {
  type EstateStore,
  type Mutation,
  openSqliteStore,
  type RewrapProgress,
} from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';
import { tempDir } from '../../../../test/support/temp.ts';
import { holdLease } from './lease.ts';
import { rewrapAll } from './run.ts';

const TTL_MS = 200;
const NAME = 'key-rewrap';

describe('the lease of a rewrap', () => {
  const stack = new AsyncDisposableStack();
  let store: EstateStore;
  before(async () => {
    const { path: dir } = stack.use(await tempDir('lease'));
    store = stack.use(await openSqliteStore({ path: path.join(dir, 'estate.sqlite') }));
  });
  after(() => stack.disposeAsync());

  /** Whether somebody else gets it. */
  const isFree = async () => (await store.acquireLease(NAME, 'another', TTL_MS)) !== undefined;
  const hold = () => holdLease(store, { name: NAME, holder: 'this', ttlMs: TTL_MS });

  test('lives for as long as it is held, and is given up', async () => {
    {
      await using lease = await hold();
      const endMs = performance.now() + 5 * TTL_MS;
      while (performance.now() < endMs) assert.equal(await isFree(), false);
      lease.check();
    }
    assert.equal(await isFree(), true);
    await assert.rejects(hold(), { code: 'conflict' });
    await store.releaseLease(NAME, 'another');
  });

  test('that another process got is lost, and says so', async () => {
    await using lease = await hold();
    await store.releaseLease(NAME, 'this');
    assert.equal(await isFree(), true);
    await new Promise((done) => lease.lost.addEventListener('abort', done));
    assert.throws(() => lease.check(), { code: 'conflict' });
    await store.releaseLease(NAME, 'another');
  });

  test('of a store that does not answer is lost when its time is over', async () => {
    let isAway = false;
    const flaky = {
      acquireLease: async (...ask: Parameters<EstateStore['acquireLease']>) => {
        if (isAway) throw new Error('away');
        return store.acquireLease(...ask);
      },
      releaseLease: store.releaseLease.bind(store),
    };
    await using lease = await holdLease(flaky, { name: NAME, holder: 'this', ttlMs: TTL_MS });
    isAway = true;
    lease.check();
    await new Promise((done) => lease.lost.addEventListener('abort', done));
    assert.throws(() => lease.check(), { code: 'conflict' });
  });

  test('outlives the waits of a run that may do two values a second, each of which is done once', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    await fill(store, names);
    await using lease = await hold();
    const asked: string[] = [];
    const kms = {
      rewrap: async ({ items }: { items: readonly { context: { name: string } }[] }) => {
        asked.push(...items.map(({ context }) => context.name));
        const result = { kid: 'k2', dek_wrap_nonce_b64: 'n', dek_wrapped_b64: 'w' };
        return { items: items.map(() => ({ ok: true as const, result })) };
      },
      check: async ({ items }: { items: readonly unknown[] }) => ({
        items: items.map(() => ({ ok: true as const, result: {} })),
      }),
    };
    const events = { rewrapped: () => {}, rewrapFaulty: () => {} };
    const { signal } = new AbortController();
    let isOver = false;
    const startedMs = performance.now();
    const running = rewrapAll(['k1'], PROGRESS, {
      ...{ store, kms, events, lease, signal, perSecond: 2 },
    }).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      assert.equal(await isFree(), false);
      await delay(10);
    }
    assert.equal((await running).rewrapped, names.length);
    assert.deepEqual(asked.sort(), names);
    assert.ok(performance.now() - startedMs > 1500, 'no faster than it may');
  });
});

const PROGRESS: RewrapProgress = {
  ...{ key: 'pillars', kid: 'k2', by: 'ann', startedAtMs: 0, updatedAtMs: 0, finishedAtMs: undefined },
  ...{ rewrapped: 0, failed: 0, left: 0 },
};

async function fill(store: EstateStore, names: readonly string[]): Promise<void> {
  const value = fromPlain({ $enc: { kid: 'k1', dek_wrap_nonce_b64: 'n', dek_wrapped_b64: 'w' } });
  const mutations = names.map((name): Mutation => {
    const record = { pid: `pid-${name}`, name, ...rootTarget, isSecret: true, value };
    return { kind: 'pillar.create', record };
  });
  await store.write({ by: 'ann', atMs: 0, mutations, events: [] });
}
