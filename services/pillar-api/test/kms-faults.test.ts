import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  ColonnadeError,
  kmsReseal,
  kmsRewrap,
  kmsSeal,
  type PillarContext,
  rootTarget,
  startCall,
} from '@colonnade/contracts';
import { openSqliteStore, type SealedRow } from '@colonnade/estate-store';
import { type Value, valuesEqual } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import { granter } from '../src/auth/grant.ts';
import { createKms, type Kms } from '../src/kms.ts';
import { rewrapRows } from '../src/rewrap/step.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

type Fault = (items: Item[]) => Item[];
type Item = { ok: boolean; result?: Record<string, unknown> };

/** What a sound KMS would never answer, though each is of the right form. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'a bit of the wrapped DEK': (items) => items.map((item) => flipped(item, 'dek_wrapped_b64')),
  'two items in each other’s place': (items) => items.toReversed(),
  'one item for all': (items) => items.map(() => items[0] as Item),
  'another key’s id': (items) => items.map((item) => changed(item, 'kid', () => 'core-kek-v1x')),
};
const SEALED_FAULTS: Readonly<Record<string, Fault>> = {
  ...FAULTS,
  'a bit of the ciphertext': (items) => items.map((item) => flipped(item, 'ct_b64')),
};

function changed(item: Item, field: string, to: (text: string) => string): Item {
  const { $enc } = item.result as { $enc?: Record<string, unknown> };
  const fields = $enc ?? item.result ?? {};
  const one = { ...fields, [field]: to(String(fields[field])) };
  return { ...item, result: $enc === undefined ? one : { $enc: one } };
}

function flipped(item: Item, field: string): Item {
  return changed(item, field, (text) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1));
}

/** What is stored opens: an answer of the key service is looked at before it takes the place of anything. */
describe('a key service that answers wrongly', () => {
  let world: ApiWorld;
  let sound: Kms;
  let faulty: (subject: string, fault: Fault) => Kms;
  before(async () => {
    world = await startWorld({ env: { REWRAP_RUN_MS: '0' }, kmsEnv: { KMS_KEY_PREPUBLISH_S: '1' } });
    const bus = await world.bus.as('pillar-api');
    sound = createKms(bus);
    faulty = (subject, fault) =>
      createKms({
        request: async (endpoint, message, call) => {
          const answer = await bus.request(endpoint, message, call);
          if (endpoint.subject !== subject) return answer;
          return { items: fault((answer as { items: Item[] }).items) } as typeof answer;
        },
      });
  });
  after(() => world[Symbol.asyncDispose]());

  const call = () => startCall(10_000);
  const by = () => ({
    granted: granter({
      ...{ token: world.adminToken, sub: 'bootstrap-admin' },
      tokenId: world.adminToken.split('_')[1] ?? '',
    }),
  });
  const place = (name: string): PillarContext => ({ ...rootTarget, name });
  const refuses = (work: Promise<unknown>) =>
    assert.rejects(work, (thrown: unknown) => {
      assert.ok(thrown instanceof ColonnadeError, String(thrown));
      assert.equal(thrown.code, 'kms_unavailable');
      return true;
    });

  for (const [what, fault] of Object.entries(SEALED_FAULTS))
    test(`when it seals and gives ${what}: nothing to store`, async () => {
      const values = ['a', 'b'].map((name) => ({ context: place(name), value: `of ${name}` }));
      await refuses(faulty(kmsSeal.subject, fault).sealAll(values, call()));
    });

  for (const [what, fault] of Object.entries(SEALED_FAULTS))
    test(`when it seals for another place and gives ${what}: nothing to store`, async () => {
      const values = ['a', 'b'].map((name) => ({ context: place(name), value: `of ${name}` }));
      const sealed = await sound.sealAll(values, call());
      const moves = values.map(({ context }, i) => ({
        ...{ from: context, to: place(`${context.name}2`), value: sealed[i] as Value },
      }));
      await refuses(faulty(kmsReseal.subject, fault).reseal(by(), moves, call()));
    });

  test('when it rewraps: what is stored stays, and goes on when it answers rightly', async () => {
    for (const name of ['one', 'two']) {
      const body = { tgt_type: 'root', name, value: `secret ${name}`, is_secret: true };
      assert.equal((await sendPlain(world.admin, 'POST', '/pillars', body)).status, 201);
    }
    await using store = await openSqliteStore({ path: world.storePath });
    const stored = async (kid: string) => (await store.listSealed(kid, { after: undefined, limit: 10 })).rows;
    const { kid } = plain(await world.admin.call('POST', '/keys/pillars/rotate')) as { kid: string };
    await waitFor('the next version to seal', async () => {
      const sealed = await sound.seal(place('try'), 'x', call());
      return JSON.stringify(sealed, (_, one) => (typeof one === 'bigint' ? Number(one) : one)).includes(kid);
    });
    const before = await stored('core-kek-v1');
    assert.equal(before.length, 2);
    for (const [what, fault] of Object.entries(FAULTS)) {
      const deps = { store, kms: faulty(kmsRewrap.subject, fault), call: call() };
      await refuses(rewrapRows(before, deps));
      const left = await stored('core-kek-v1');
      const isSame = (row: SealedRow) => before.some((one) => valuesEqual(one.value, row.value));
      // Of “one for all” it is one that opens, and it may go on.
      assert.ok(left.every(isSame), what);
      for (const row of [...left, ...(await stored(kid))])
        assert.equal((await sound.check({ items: [asked(row)] }, call())).items[0]?.ok, true, what);
    }
    await rewrapRows(await stored('core-kek-v1'), { store, kms: sound, call: call() });
    assert.deepEqual([(await stored('core-kek-v1')).length, (await stored(kid)).length], [0, 2]);
  });

  test('a value that does not open as it is stored is named, and holds nothing up', async () => {
    const value = await sound.seal(place('x'), 'x', call());
    const { result } = flipped({ ok: true, result: value as Record<string, unknown> }, 'ct_b64');
    const rows = [value, result as Value].map((one, i) => ({
      ...{ ...rootTarget, pid: `p${i}`, name: 'x', value: one },
    }));
    const swaps: string[] = [];
    const store = {
      swapSealed: async (all: readonly { pid: string }[]) => swaps.push(...all.map(({ pid }) => pid)),
    };
    const done = await rewrapRows(rows, { store, kms: sound, call: call() });
    assert.deepEqual(swaps, ['p0']);
    assert.deepEqual(done.failed, [{ pid: 'p1', code: 'decrypt_failed' }]);
  });
});

function asked({ tgtType: tgt_type, tgtId: tgt_id, pillarenv, name, value: enc }: SealedRow) {
  return { context: { tgt_type, tgt_id, pillarenv, name }, enc };
}
