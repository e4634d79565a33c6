import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { ColonnadeError, type PublicJwk } from '@colonnade/contracts';
import { createKeySet, type Jwks } from './key-set.ts';

function newKey(kid: string): PublicJwk {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' };
}

function newIssuer(...kids: string[]) {
  const state = { keys: kids.map(newKey), reads: 0, isAway: false };
  const fetchKeys = async (): Promise<Jwks> => {
    state.reads += 1;
    if (state.isAway) throw new ColonnadeError('unavailable', 'away');
    return { issuer: 'https://colonnade.example', keys: state.keys };
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
