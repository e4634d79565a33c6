import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ColonnadeError, minionTarget, rootTarget, startCall } from '@colonnade/contracts';
import { openSqliteReader, openSqliteStore } from '@colonnade/estate-store';
import { fromPlain, type Value } from '@colonnade/value';
import { tempDir } from '../../../test/support/temp.ts';
import { answerRewrapped } from './answer-rewrapped.ts';
import { createEstateCache } from './estate-cache.ts';
import type { AskKms } from './open-secrets.ts';

const sealed = (kid: string): Value => fromPlain({ $enc: { kid, ct_b64: 'AAAA' } });

test('a merge whose cached secrets stand under a key that is gone is made again from the store', async () => {
  await using dir = await tempDir('rewrapped');
  const place = { path: `${dir.path}/estate.sqlite` };
  await using store = await openSqliteStore(place);
  const master = { id: 'm1', envs: [], tokenIds: ['t'], onUnknownMinion: 'refuse' as const };
  const minion = { master: 'm1', id: 'web-1', collections: [], registeredBy: 't' };
  const pillar = { pid: 'p1', name: 'db', isSecret: true };
  await store.write({
    mutations: [
      { kind: 'master.put', expect: 'absent', record: master },
      { kind: 'minion.put', expect: 'absent', record: minion },
      { kind: 'pillar.create', record: { ...pillar, ...rootTarget, value: sealed('k1') } },
      {
        kind: 'pillar.create',
        record: { ...pillar, pid: 'p2', name: 'own', ...minionTarget('web-1', 'm1'), value: sealed('k1') },
      },
    ],
    ...{ events: [], by: 't', atMs: 1 },
  });
  await using reader = await openSqliteReader(place);
  const estate = createEstateCache({ reader, mode: 'on', maxBytes: 1e6, readTimeoutMs: 5000 });
  /** Opens what stands under these keys. */
  let known = ['k1', 'k2'];
  const asked: string[] = [];
  const askKms: AskKms = async ({ items }) => ({
    items: items.map(({ enc }) => {
      const { kid } = (enc as { $enc: { kid: string } }).$enc;
      asked.push(kid);
      if (known.includes(kid)) return { ok: true, result: `under ${kid}` };
      return { ok: false, error: { code: 'kid_unknown', message: 'none of ours' } };
    }),
  });
  const merge = async () => {
    asked.length = 0;
    const request = { token: 'x', master: 'm1', minionId: 'web-1', pillarenv: 'auto' };
    const deps = { estate, askKms, policy: 'members' as never, registerMinion: async () => {} };
    const verifyToken = async () => ({ tokenId: 't' });
    const beginRecord = () => ({ store: async () => {} });
    const answer = await answerRewrapped(
      request,
      { ...deps, verifyToken, beginRecord } as never,
      startCall(10_000),
    );
    return answer.pillar;
  };
  assert.deepEqual(await merge(), fromPlain({ db: 'under k1', own: 'under k1' }));
  for (const pid of ['p1', 'p2']) await store.swapSealed([{ pid, from: sealed('k1'), to: sealed('k2') }]);
  // Nothing has changed for whoever reads: the cache keeps what it has, and it still opens.
  assert.deepEqual(await merge(), fromPlain({ db: 'under k1', own: 'under k1' }));
  known = ['k2'];
  assert.deepEqual(await merge(), fromPlain({ db: 'under k2', own: 'under k2' }));
  assert.deepEqual(asked, ['k1', 'k1', 'k2', 'k2']);
  // From then on it is cached so.
  await merge();
  assert.deepEqual(asked, ['k2', 'k2']);
  known = [];
  await assert.rejects(merge(), (thrown: ColonnadeError) => thrown.code === 'kms_refused');
  assert.deepEqual(asked.length, 4);
});
