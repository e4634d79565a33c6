import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import type { EstateSnapshot } from '@colonnade/estate-store';
import { type Principal, rightsOf } from '../auth/authenticate.ts';
import { createChanges } from './changes.ts';

const snapshot: EstateSnapshot = {
  ...{ clock: { incarnation: 'life', tick: 7 }, changed: [], scopes: new Map(), collections: undefined },
  ...{ masters: new Map(), minions: new Map(), tasks: new Map() },
};

function caller(renew: () => Promise<Principal>): Principal {
  const tree = { getBranch: async () => [], listCollections: async () => [] };
  return {
    ...{ sub: 'ann', tokenId: 't', rateKey: 'token:t', renew },
    granted: async () => assert.fail('nothing is asked of crypto-kms'),
    workload: undefined,
    ...rightsOf({ roles: ['viewer'], scopedRoles: [] }, tree),
  };
}

test('a stream ends when the token it was opened with is gone', async () => {
  const store = { snapshot: async () => snapshot };
  await using changes = createChanges({ store, pollMs: 5, failed: () => {}, beatMs: 5 });
  let isGone = false;
  const renew = async (): Promise<Principal> => {
    if (isGone) throw new ColonnadeError('unauthorized', 'gone');
    return caller(renew);
  };
  const body = await changes.open(caller(renew), undefined);
  const all = text(body);
  isGone = true;
  assert.match(
    await all,
    /^id: life\.7\nevent: ready[\s\S]*event: end\ndata: \{"code":"unauthorized"\}\n\n$/u,
  );
});

test('a store that is away refuses a new stream and keeps no place for it', async () => {
  const store = { snapshot: () => Promise.reject(new ColonnadeError('unavailable', 'away')) };
  await using changes = createChanges({ store, pollMs: 5, failed: () => {} });
  for (let i = 0; i < 20; i += 1) {
    await assert.rejects(
      changes.open(
        caller(async () => caller(async () => undefined as never)),
        undefined,
      ),
      {
        code: 'unavailable',
      },
    );
  }
});
