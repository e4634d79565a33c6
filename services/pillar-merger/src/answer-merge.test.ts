import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError, minionEnv, startCall } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import { answerMerge, type MergeDeps } from './answer-merge.ts';
import { createCollectionTree } from './collection-tree.ts';
import type { EstateView } from './estate-view.ts';

const request = { token: 't', master: 'm1', minionId: 'web-1', pillarenv: 'auto' };
const by = { createdBy: 't', updatedBy: 't', createdAtMs: 0, updatedAtMs: 0, tick: 1 };
const secret: PillarRecord = {
  ...{ pid: 'p', tgtType: 'minion', tgtId: 'web-1', pillarenv: minionEnv('web-1', 'm1') },
  ...{ name: 'password', value: { $enc: { ct_b64: 'x' } }, isSecret: true, ...by },
};
const view: EstateView = {
  master: () => ({ id: 'm1', envs: [], tokenIds: ['jti'], onUnknownMinion: 'refuse', ...by }),
  minion: () => ({ master: 'm1', id: 'web-1', collections: [], registeredBy: 'api', ...by }),
  task: () => undefined,
  tree: () => createCollectionTree([]),
  scope: (env) => (env === secret.pillarenv ? [secret] : []),
};

/** A merge whose two waits, for the KMS and for the record, end when the test says. */
function start() {
  const opened = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<void>();
  const begun = { kms: Promise.withResolvers<void>(), record: Promise.withResolvers<object>() };
  const deps: MergeDeps = {
    estate: { read: async (_, compute) => ({ clock: { incarnation: 'i', tick: 7 }, result: compute(view) }) },
    verifyToken: async () => ({ tokenId: 'jti' }),
    async askKms() {
      begun.kms.resolve();
      await opened.promise;
      return { items: [{ ok: true, result: 'opened' }] };
    },
    registerMinion: async () => {},
    policy: 'entitled',
    beginRecord: () => ({
      store(given) {
        begun.record.resolve(given);
        return stored.promise;
      },
    }),
  };
  // One that is refused before anybody asks for it is nobody's fault.
  stored.promise.catch(() => {});
  let isAnswered = false;
  const answer = answerMerge(request, deps, startCall(60_000));
  answer.then(
    () => (isAnswered = true),
    () => (isAnswered = true),
  );
  return { opened, stored, begun, answer, isAnswered: () => isAnswered };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the record of a merge', () => {
  test('is stored while the KMS opens, and says what is given', async () => {
    const merge = start();
    await merge.begun.kms.promise;
    assert.deepEqual(await merge.begun.record.promise, { clock: 7, secrets: 1 });
    merge.stored.resolve();
    merge.opened.resolve();
    assert.deepEqual({ ...((await merge.answer).pillar as object) }, { password: 'opened' });
  });

  test('is there before the answer, however fast the KMS is', async () => {
    const merge = start();
    merge.opened.resolve();
    await turn();
    assert.equal(merge.isAnswered(), false);
    merge.stored.resolve();
    await merge.answer;
  });

  test('that is not stored withholds the answer', async () => {
    const merge = start();
    merge.stored.reject(new ColonnadeError('bus_unavailable', 'not stored'));
    await turn();
    merge.opened.resolve();
    await assert.rejects(merge.answer, { code: 'bus_unavailable' });
  });

  test('does not hide why the KMS refused', async () => {
    const merge = start();
    merge.opened.reject(new ColonnadeError('unavailable', 'no service answers there'));
    merge.stored.reject(new ColonnadeError('bus_unavailable', 'not stored'));
    await assert.rejects(merge.answer, { code: 'kms_unavailable' });
  });
});
