import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import {
  ColonnadeError,
  JWKS_MAX_AGE_MS,
  JWKS_TRUST_MS,
  type Jwks,
  type PublicJwk,
} from '@colonnade/contracts';
import { createKeySet } from './key-set.ts';

function newKey(kid: string): PublicJwk {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' };
}

function newIssuer(...kids: string[]) {
  const state = {
    keys: kids.map(newKey),
    masterKids: [] as string[],
    reads: 0,
    isAway: false,
    isHung: false,
  };
  const fetchKeys = async (): Promise<Jwks> => {
    state.reads += 1;
    if (state.isAway) throw new ColonnadeError('unavailable', 'away');
    if (state.isHung) await new Promise(() => {});
    return { issuer: 'https://colonnade.example', keys: state.keys, master_kids: state.masterKids };
  };
  return { state, fetchKeys };
}

test('keys are read once for all who ask at the same time', async () => {
  const { state, fetchKeys } = newIssuer('a');
  const keys = createKeySet({ fetchKeys });
  const found = await Promise.all(Array.from({ length: 20 }, () => keys.find('a')));
  assert.ok(found.every((key) => key?.alg === 'EdDSA'));
  assert.equal(await keys.issuer(), 'https://colonnade.example');
  assert.equal(state.reads, 1);
});

test('an unknown kid makes them be read again, once in the cool-down however many ask', async () => {
  const { state, fetchKeys } = newIssuer('a');
  const keys = createKeySet({ fetchKeys, cooldownMs: 60_000 });
  await keys.find('a');
  for (let at = 0; at < 100; at += 1) assert.equal(await keys.find(`made-up-${at}`), undefined);
  assert.equal(state.reads, 1);
  const eager = createKeySet({ fetchKeys, cooldownMs: 0 });
  await eager.find('a');
  state.keys.push(newKey('b'));
  assert.ok(await eager.find('b'));
  assert.equal(await eager.find(undefined), undefined);
});

test('when they cannot be read, known ones serve on, an unknown one is nobody’s guess', async () => {
  const { state, fetchKeys } = newIssuer('a');
  state.isAway = true;
  const keys = createKeySet({ fetchKeys, cooldownMs: 0, maxAgeMs: 0 });
  await assert.rejects(keys.find('a'), { code: 'kms_unavailable' });
  state.isAway = false;
  assert.ok(await keys.find('a'));
  state.isAway = true;
  assert.ok(await keys.find('a'));
  await assert.rejects(keys.find('b'), { code: 'kms_unavailable' });
});

test('an unknown one is nobody’s guess in the cool-down after a read that failed either', async () => {
  const { state, fetchKeys } = newIssuer('a');
  let now = 0;
  const keys = createKeySet({ fetchKeys, nowMs: () => now });
  assert.ok(await keys.find('a'));
  state.isAway = true;
  now += 6000;
  for (let at = 0; at < 3; at += 1) {
    await assert.rejects(keys.find('b'), { code: 'kms_unavailable' });
    now += 1;
  }
  assert.equal(state.reads, 2);
  assert.ok(await keys.find('a'));
});

test('keys that cannot be read anew are trusted for so long and no longer, until they can be read', async () => {
  const { state, fetchKeys } = newIssuer('a', 'm');
  state.masterKids = ['m'];
  let now = 0;
  const keys = createKeySet({ fetchKeys, cooldownMs: 0, nowMs: () => now });
  assert.ok(await keys.find('a'));
  state.isAway = true;
  now += JWKS_TRUST_MS;
  assert.ok(await keys.find('a'));
  now += 1;
  await assert.rejects(keys.find('a'), { code: 'kms_unavailable' });
  await assert.rejects(keys.find('b'), { code: 'kms_unavailable' });
  await assert.rejects(keys.published(), { code: 'kms_unavailable' });
  // What is barred are keys of identities alone.
  assert.ok(await keys.findOfMasters('m'));
  state.isAway = false;
  now += 1;
  assert.ok(await keys.find('a'));
  assert.equal((await keys.published()).keys.length, 1);
});

test('a barred key is gone once the keys are as old as they may be, however often others are asked for meanwhile', async () => {
  const { state, fetchKeys } = newIssuer('a', 'b');
  let now = 0;
  const keys = createKeySet({ fetchKeys, nowMs: () => now });
  assert.ok(await keys.find('a'));
  state.keys = state.keys.filter(({ kid }) => kid !== 'a');
  for (; now <= JWKS_MAX_AGE_MS; now += 100) await keys.find('b');
  assert.equal(await keys.find('a'), undefined);
});

test('who asks all the time never waits for a read, and keys that are the same stay the same', async () => {
  const { state, fetchKeys } = newIssuer('a');
  let now = 0;
  const keys = createKeySet({ fetchKeys, nowMs: () => now });
  const before = await keys.find('a');
  now = JWKS_MAX_AGE_MS * 0.6;
  state.isHung = true;
  assert.equal(await keys.find('a'), before);
  assert.equal(state.reads, 2);
  const again = createKeySet({ fetchKeys, nowMs: () => now });
  state.isHung = false;
  const first = await again.find('a');
  now += JWKS_MAX_AGE_MS + 1;
  assert.equal(await again.find('a'), first);
  assert.equal(state.reads, 4);
  state.keys = [newKey('a')];
  now += JWKS_MAX_AGE_MS + 1;
  assert.notEqual(await again.find('a'), first);
});

test('a key is for masters’ tokens or for identities, and never for both', async () => {
  const { state, fetchKeys } = newIssuer('a', 'm');
  state.masterKids = ['m'];
  const keys = createKeySet({ fetchKeys });
  assert.deepEqual([await keys.find('m'), await keys.findOfMasters('a')], [undefined, undefined]);
  assert.ok((await keys.find('a')) && (await keys.findOfMasters('m')));
  assert.deepEqual(
    (await keys.published()).keys.map(({ kid }) => kid),
    ['a'],
  );
});
