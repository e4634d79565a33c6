import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { type EstateStore, openSqliteStore } from '@colonnade/estate-store';
import { tempDir } from '../../../../test/support/temp.ts';
import { closeInStep } from './close-in-step.ts';
import type { Key } from './plan.ts';

const keyAt = (min_version: number): Key => ({
  name: 'pillars',
  min_version,
  versions: [1, 2, 3].map((version) => ({
    ...{ version, kid: `k${version}`, state: version === 3 ? ('active' as const) : ('retired' as const) },
    ...{ created_at_ms: 0, active_from_ms: 0, destroyed_at_ms: null, erase_after_ms: null, encryptions: 0 },
  })),
});

describe('versions of a key, barred in the store and in the key service', () => {
  const stack = new AsyncDisposableStack();
  let store: EstateStore;
  before(async () => {
    const { path: dir } = stack.use(await tempDir('close'));
    store = stack.use(await openSqliteStore({ path: path.join(dir, 'estate.sqlite') }));
  });
  after(() => stack.disposeAsync());
  beforeEach(() => store.closeKids(['k1']));

  const read = async () => keyAt(2);
  const closed = async () => [...(await store.readClosedKids())].sort();
  const fails = (code: ErrorCode) => async () => {
    throw new ColonnadeError(code, 'no');
  };

  test('are closed in the store before the key service is told', async () => {
    await closeInStep(store, read, 3, async () => assert.deepEqual(await closed(), ['k1', 'k2']));
    assert.deepEqual(await closed(), ['k1', 'k2']);
  });

  test('are as before when it refuses', async () => {
    for (const code of ['kms_refused', 'conflict', 'not_found', 'bad_request', 'forbidden'] as const) {
      await assert.rejects(closeInStep(store, read, 3, fails(code)), { code });
      assert.deepEqual(await closed(), ['k1']);
    }
  });

  test('stay closed when it gives no answer, since it may have barred them, and asking again ends that', async () => {
    for (const code of ['kms_unavailable', 'expired', 'internal'] as const) {
      await assert.rejects(closeInStep(store, read, 3, fails(code)), { code, message: /ask again/u });
      assert.deepEqual(await closed(), ['k1', 'k2']);
    }
    // It had not: somebody has thought better of it.
    await closeInStep(store, read, 2, async () => {});
    assert.deepEqual(await closed(), ['k1']);
  });

  test('are let in again only when they open again', async () => {
    for (const code of ['kms_unavailable', 'conflict'] as const) {
      await assert.rejects(closeInStep(store, read, 1, fails(code)), { code });
      assert.deepEqual(await closed(), ['k1']);
    }
    await closeInStep(store, read, 1, async () => assert.deepEqual(await closed(), ['k1']));
    assert.deepEqual(await closed(), []);
  });

  test('are decided about by one at a time, so that one that is refused opens nothing of the other’s', async () => {
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = closeInStep(store, read, 3, async () => {
      asked.resolve();
      await answer.promise;
    });
    await asked.promise;
    for (const version of [2, 3])
      await assert.rejects(closeInStep(store, read, version, fails('conflict')), {
        code: 'conflict',
        message: /another request/u,
      });
    answer.resolve();
    await first;
    assert.deepEqual(await closed(), ['k1', 'k2']);
    await closeInStep(store, read, 2, async () => {});
    assert.deepEqual(await closed(), ['k1']);
  });

  test('stay closed when they are refused so late that another may have decided meanwhile', async (t) => {
    const laterMs = performance.now() + 60_000;
    const late = async () => {
      t.mock.method(performance, 'now', () => laterMs);
      return fails('conflict')();
    };
    await assert.rejects(closeInStep(store, read, 3, late), { code: 'conflict', message: 'no' });
    assert.deepEqual(await closed(), ['k1', 'k2']);
  });
});
