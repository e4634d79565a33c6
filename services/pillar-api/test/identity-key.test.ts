import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { createApiClient } from '@colonnade/embedded';
import { openSqliteStore } from '@colonnade/estate-store';
import { decodeJwt, decodeProtectedHeader, importJWK, type JWK, SignJWT } from 'jose';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, auditRecords, plain, sendPlain, startWorld } from './support.ts';

type Version = {
  name: string;
  purpose: string;
  version: number;
  kid: string;
  state: string;
  opens: boolean;
};

let world: ApiWorld;
before(async () => {
  world = await startWorld({
    env: { REWRAP_RUN_MS: '0' },
    kmsEnv: { KMS_KEY_PREPUBLISH_S: '1', KMS_KEY_UNDO_S: '3600' },
  });
  await post('/masters', { id: 'm1' });
  const fresh = { 'if-none-match': '*' };
  await sendPlain(world.admin, 'PUT', '/masters/m1/minions/web-1', { collections: [] }, fresh);
  await post('/tasks/templates', { id: 'deploy', name: 'deploy', schema: { type: 'object' } });
});
after(() => world[Symbol.asyncDispose]());

const post = (url: string, body?: object) => sendPlain(world.admin, 'POST', url, body);
const versions = async (key = 'identity') =>
  (plain(await world.admin.call('GET', '/keys')).items as Version[]).filter(({ name }) => name === key);
const states = async () => (await versions()).map(({ kid, state, opens }) => [kid, state, opens]);

/** The identity of a new task. */
async function newIdentity(): Promise<string> {
  const minions = [{ master: 'm1', minion_id: 'web-1' }];
  const made = plain(await post('/tasks', { tpl_id: 'deploy', minions, pillars: [] }));
  return (made.identity as { token: string } | null)?.token ?? assert.fail(JSON.stringify(made));
}
const kidOf = (token: string) => decodeProtectedHeader(token).kid;
const ask = (token: string, url = world.api.url) => createApiClient(url, token).send('GET', '/identity');

async function rotated(key: string): Promise<void> {
  const { version } = plain(await world.admin.call('POST', `/keys/${key}/rotate`)) as Version;
  await waitFor('the next version to be used', async () =>
    (await versions(key)).some((one) => one.version === version && one.state === 'active'),
  );
}

test('is seen beside the other, and rotated by hand: what the one before has signed stays good', async () => {
  const before = await newIdentity();
  assert.deepEqual(await states(), [['identity-v1', 'active', true]]);
  assert.deepEqual(
    [(await versions())[0]?.purpose, (await versions('pillars'))[0]?.purpose],
    ['sign', 'seal'],
  );
  const next = plain(await world.admin.call('POST', '/keys/identity/rotate')) as Version;
  assert.deepEqual([next.kid, next.state, next.purpose], ['identity-v2', 'prepublished', 'sign']);
  assert.equal(kidOf(await newIdentity()), kidOf(before));
  const after = await waitFor('the next key to sign', async () => {
    const token = await newIdentity();
    return kidOf(token) === kidOf(before) ? undefined : token;
  });
  assert.deepEqual(await states(), [
    ['identity-v1', 'retired', true],
    ['identity-v2', 'active', true],
  ]);
  assert.deepEqual([(await ask(before)).status, (await ask(after)).status], [200, 200]);
});

test('nothing is stored under it, and only an admin changes it', async () => {
  assertProblem(await post('/keys/identity/rewrap'), 404, 'not_found');
  assertProblem(await world.admin.send('GET', '/keys/identity/rewrap'), 404, 'not_found');
  const editor = await world.as(['editor', 'secret-reader'], 'ann');
  assertProblem(await sendPlain(editor, 'POST', '/keys/identity/rotate'), 403, 'forbidden');
  assertProblem(await post('/keys/other/rotate'), 404, 'not_found');
  assert.equal((await versions()).length, 2);
});

test('barring a version refuses what it has signed, and leaves what is closed in the store as it was', async () => {
  await rotated('pillars');
  const [first] = await versions('pillars');
  assert.equal((await post('/keys/pillars/min-version', { version: 2 })).status, 200);
  assertProblem(await post('/keys/identity/destroy', { version: 1 }), 409, 'conflict');
  assertProblem(await post('/keys/identity/min-version', { version: 9 }), 404, 'not_found');
  const good = await newIdentity();
  await rotated('identity');
  assert.equal((await post('/keys/identity/min-version', { version: 3 })).status, 200);
  {
    await using store = await openSqliteStore({ path: world.storePath });
    assert.deepEqual(await store.readClosedKids(), [first?.kid]);
  }
  assert.deepEqual(await states(), [
    ['identity-v1', 'retired', false],
    ['identity-v2', 'retired', false],
    ['identity-v3', 'active', true],
  ]);
  // crypto-kms knows at once; pillar-api when it reads the keys next.
  const renewed = await createApiClient(world.api.url, good).send('POST', '/identity/renew');
  assertProblem(renewed, 403, 'kms_refused');
  const refused = async () => (await ask(good)).status === 401;
  await waitFor('pillar-api to know', refused, { limitMs: 30_000 });
  assert.equal((await ask(await newIdentity())).status, 200);

  assert.equal((plain(await post('/keys/identity/destroy', { version: 1 })) as Version).state, 'destroyed');
  assert.equal((plain(await post('/keys/identity/undestroy', { version: 1 })) as Version).state, 'retired');
  const changes = (await auditRecords(world.bus))
    .filter(({ objectRef }) => objectRef?.resource === 'keys' && objectRef.name?.startsWith('identity'))
    .map(({ objectRef }) => objectRef?.subresource);
  for (const what of ['rotate', 'min-version', 'destroy', 'undestroy'])
    assert.ok(changes.includes(what), what);
});

test('the key of masters’ tokens, which lies in the clear, makes no identity, and is not published for any', async () => {
  const good = await newIdentity();
  const file = path.join(world.dir, 'kms', 'identity-key.json');
  const { active, keys } = JSON.parse(await readFile(file, 'utf8')) as {
    active: string;
    keys: (JWK & { kid: string })[];
  };
  const { kid: _, ...jwk } = keys.find(({ kid }) => kid === active) ?? assert.fail('no key');
  const forged = await new SignJWT(decodeJwt(good))
    .setProtectedHeader({ ...decodeProtectedHeader(good), alg: 'EdDSA', kid: active })
    .sign(await importJWK(jwk, 'EdDSA'));
  assert.equal((await ask(good)).status, 200);
  assertProblem(await ask(forged), 401, 'unauthorized');
  const published = await fetch(new URL('/.well-known/jwks.json', world.api.url));
  const kids = ((await published.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
  assert.ok(kids.length > 0 && !kids.includes(active), String(kids));
});
