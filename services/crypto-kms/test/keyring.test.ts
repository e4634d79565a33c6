import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  type Enc,
  encodeTree,
  kmsDestroyKey,
  kmsIssueTask,
  kmsJwks,
  kmsListKeys,
  kmsOpenForApi,
  kmsRotateKey,
  kmsSeal,
  kmsSetMinVersion,
  rootTarget,
  zEnc,
} from '@colonnade/contracts';
import { decodeProtectedHeader } from 'jose';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, type PreparedKms, prepareKms, rejects } from './support.ts';

let kms: PreparedKms;
let api: Bus;
before(async () => {
  kms = await prepareKms();
  api = await kms.bus.as('pillar-api');
});
after(() => kms[Symbol.asyncDispose]());

const ROOT = { KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'), KMS_KEY_PREPUBLISH_S: '1' };
const context = {
  ...{ tgt_type: rootTarget.tgtType, tgt_id: rootTarget.tgtId, pillarenv: rootTarget.pillarenv, name: 'x' },
};

async function seal(): Promise<Enc> {
  const { items } = await api.request(kmsSeal, { items: [{ context, value: 'kept' }] }, call());
  assert.ok(items[0]?.ok);
  return items[0].result;
}

async function open(enc: Enc): Promise<unknown> {
  const asked = await kms.granted(kmsOpenForApi, { context, enc: encodeTree(zEnc, enc) });
  return (await api.request(kmsOpenForApi, asked, call())).value;
}

const rotate = async (name = 'pillars') =>
  api.request(kmsRotateKey, await kms.granted(kmsRotateKey, { name }), call());

const versions = async (key = 'pillars') =>
  (await api.request(kmsListKeys, {}, call())).keys.find(({ name }) => name === key)?.versions ?? [];

test('without a root key there is no keyring, and that is said', async () => {
  await using _service = await kms.start();
  assert.deepEqual((await api.request(kmsListKeys, {}, call())).keys, []);
  await rejects(rotate(), 'conflict');
});

test('the configured KEK goes on as version one, and what it sealed opens after a rotation, on both replicas', async () => {
  const before = await (async () => {
    await using _service = await kms.start();
    return await seal();
  })();
  await using _one = await kms.start(ROOT);
  await using _two = await kms.start(ROOT);
  assert.equal((await seal()).$enc.kid, 'core-kek-v1');
  const made = await rotate();
  assert.equal(made.version.state, 'prepublished');
  await rejects(rotate(), 'conflict');
  // Both replicas answer in turns: whichever seals with the new one, the other opens it.
  const sealed = await waitFor('the new key to seal', async () => {
    const enc = await seal();
    return enc.$enc.kid === 'pillars-v2' ? enc : undefined;
  });
  for (let i = 0; i < 20; i += 1) for (const enc of [before, sealed]) assert.equal(await open(enc), 'kept');
  assert.deepEqual(
    (await versions()).map(({ kid, state }) => `${kid} ${state}`),
    ['core-kek-v1 retired', 'pillars-v2 active'],
  );
  const record = (await kms.records()).find(({ verb }) => verb === 'key.rotate');
  assert.equal(record?.objectRef?.name, 'pillars');
});

test('the KEK may be taken out of the configuration once it is in the keyring; another root key is refused', async () => {
  await using _service = await kms.start({ ...ROOT, PILLARS_KEK_B64: undefined });
  assert.equal(await open(await seal()), 'kept');
  await assert.rejects(kms.start({ ...ROOT, KMS_ROOT_KEY_B64: randomBytes(32).toString('base64') }), {
    code: 'misconfigured',
    message: /root key/u,
  });
});

test('only an admin rotates, and only a key there is', async () => {
  await using _service = await kms.start({ ...ROOT, PILLARS_KEK_B64: undefined });
  const count = (await versions()).length;
  await rejects(api.request(kmsRotateKey, { grant: 'x', name: 'pillars' }, call()), 'unauthorized');
  await rejects(rotate('other'), 'not_found');
  const forAnother = await kms.granted(kmsRotateKey, { name: 'other' });
  await rejects(api.request(kmsRotateKey, { ...forAnother, name: 'pillars' }, call()), 'unauthorized');
  assert.equal((await versions()).length, count);
});

test('the timer rotates by age and erases what was destroyed, on record as its own', async () => {
  await using _service = await kms.start({
    ...{ ...ROOT, PILLARS_KEK_B64: undefined, KMS_KEY_MAX_AGE_S: '1', KMS_KEY_UNDO_S: '0' },
  });
  const count = (await versions()).length;
  await waitFor('two more versions', async () => (await versions()).length >= count + 2, { limitMs: 20_000 });
  const barred = await kms.granted(kmsSetMinVersion, { name: 'pillars', version: 2 });
  await api.request(kmsSetMinVersion, barred, call());
  await api.request(kmsDestroyKey, await kms.granted(kmsDestroyKey, { name: 'pillars', version: 1 }), call());
  const ownActs = async () =>
    (await kms.records())
      .filter(({ user, objectRef }) => user.username === 'crypto-kms' && objectRef?.resource === 'keys')
      .map(({ verb, objectRef, stage, responseStatus }) =>
        [verb, objectRef?.name, stage, responseStatus?.code].join(' '),
      );
  const erased = 'key.erase pillars:1 ResponseComplete 200';
  const records = await waitFor('the record of the erasure', async () => {
    const acts = await ownActs();
    return acts.includes(erased) ? acts : undefined;
  });
  assert.equal(records[records.indexOf(erased) - 1], 'key.erase pillars:1 RequestReceived ');
  for (const stage of ['RequestReceived ', 'ResponseComplete 200'])
    assert.ok(records.filter((one) => one === `key.rotate pillars ${stage}`).length >= 2, String(records));
});

test('a time before the first use that is too short for published keys is said at the start', async () => {
  const said = () => kms.logLines.filter((line) => line.includes('KMS_KEY_PREPUBLISH_S is short')).length;
  const before = said();
  {
    await using _short = await kms.start({ ...ROOT, PILLARS_KEK_B64: undefined });
  }
  assert.equal(said(), before + 1);
  await using _long = await kms.start({ ...ROOT, PILLARS_KEK_B64: undefined, KMS_KEY_PREPUBLISH_S: '60' });
  assert.equal(said(), before + 1);
});

test('the key of identities is listed and rotated by hand, and published before it signs', async () => {
  await using _service = await kms.start({ ...ROOT, PILLARS_KEK_B64: undefined });
  const published = async () => (await api.request(kmsJwks, {}, call())).keys.length;
  const signer = async (task: string) => {
    const asked = await kms.granted(kmsIssueTask, { task, template: 'deploy' });
    return decodeProtectedHeader((await api.request(kmsIssueTask, asked, call())).token).kid;
  };
  assert.deepEqual(
    (await versions('identity')).map(({ kid, state }) => `${kid} ${state}`),
    ['identity-v1 active'],
  );
  const [count, first] = [await published(), await signer('t1')];
  assert.equal((await rotate('identity')).version.state, 'prepublished');
  assert.deepEqual([await published(), await signer('t2')], [count + 2, first]);
  await rejects(rotate('identity'), 'conflict');
  await waitFor('the next key to sign', async () => (await signer('t3')) !== first);
  assert.deepEqual(
    (await versions('identity')).map(({ kid, state }) => `${kid} ${state}`),
    ['identity-v1 retired', 'identity-v2 active'],
  );
  assert.equal(await published(), count + 2);
  const records = (await kms.records()).filter(({ verb }) => verb === 'key.rotate');
  assert.ok(records.some(({ objectRef, user }) => objectRef?.name === 'identity' && user.username !== ''));
});
