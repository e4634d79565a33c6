import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import type { IdempotencyDraft, WriteBatch } from '../port.ts';
import * as h from './harness.ts';

const HOUR_MS = 3_600_000;

function draft(more: Partial<IdempotencyDraft> = {}): IdempotencyDraft {
  const response = fromPlain({ pid: 'p1', float: 1.5 });
  return {
    scope: 'ada POST /pillars k1',
    fingerprint: 'f1',
    response,
    expiresAtMs: Date.now() + HOUR_MS,
    ...more,
  };
}

function create1(pid: string, idempotency: IdempotencyDraft): WriteBatch {
  return h.batch([h.createPillar(pid)], [h.event({ pid })], { idempotency });
}

export function testIdempotency(create: h.CreateHarness): void {
  test('the same request again gets the first answer and writes nothing', async () => {
    await h.withStore(create, async (store) => {
      const first = await store.write(create1('p1', draft()));
      assert.equal(first.replayed, false);
      await h.writeTick(store, h.createPillar('p5'));
      const before = await h.dump(store);
      const again = await store.write(create1('p2', draft({ response: null })));
      assert.deepEqual(again, {
        replayed: true,
        clock: { ...first.clock, tick: first.clock.tick + 1 },
        response: draft().response,
        tick: first.clock.tick,
      });
      assert.deepEqual(await h.dump(store), before);
      const kept = { fingerprint: 'f1', response: draft().response, tick: first.clock.tick };
      assert.deepEqual(await store.findIdempotent(draft().scope), kept);
    });
  });

  test('another request under the same key is refused', async () => {
    await h.withStore(create, async (store) => {
      await store.write(create1('p1', draft()));
      const before = await h.dump(store);
      await h.assertRefused(store.write(create1('p2', draft({ fingerprint: 'f2' }))), 'idempotency_mismatch');
      assert.deepEqual(await h.dump(store), before);
      await store.write(create1('p2', draft({ scope: 'bob POST /pillars k1', fingerprint: 'f2' })));
      assert.equal(await store.findIdempotent('nobody'), undefined);
    });
  });

  test('an answer is kept until it expires, then the key is free', async () => {
    await h.withStore(create, async (store) => {
      await store.write(create1('p1', draft({ expiresAtMs: Date.now() + 2000 })));
      assert.notEqual(await store.findIdempotent(draft().scope), undefined);
      await h.waitFor(async () =>
        (await store.findIdempotent(draft().scope)) === undefined ? true : undefined,
      );
      const fresh = await store.write(create1('p2', draft({ fingerprint: 'f2' })));
      assert.equal(fresh.replayed, false);
      assert.equal((await store.findIdempotent(draft().scope))?.fingerprint, 'f2');
    });
  });

  test('two that arrive together are written once', async () => {
    await h.withStore(create, async (store, harness) => {
      await using other = await harness.openStore();
      for (let i = 0; i < 20; i++) {
        const key = draft({ scope: `k${i}` });
        const results = await Promise.all([
          store.write(create1(`a${i}`, key)),
          other.write(create1(`b${i}`, key)),
          store.write(create1(`c${i}`, key)),
        ]);
        assert.equal(results.filter(({ replayed }) => !replayed).length, 1);
        const ticks = results.map((result) => (result.replayed ? result.tick : result.clock.tick));
        assert.deepEqual(new Set(ticks), new Set([i + 1]));
      }
      assert.equal((await store.readOutbox(100)).length, 20);
    });
  });
}
