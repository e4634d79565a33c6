import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, masterSubject, masterTokenRules } from '@colonnade/contracts';
import { createKeySet } from '@colonnade/identity';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { assertMutantsRefused } from '../../../test/support/fuzz.ts';
import { createTokenVerifier } from './verify-master-token.ts';

const nowS = () => Math.floor(Date.now() / 1000);

async function setUp() {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const { x } = await exportJWK(publicKey);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: String(x), kid: 'k1', use: 'sig', alg: 'EdDSA' } as const;
  const verify = createTokenVerifier(
    createKeySet({
      fetchKeys: async () => ({ issuer: 'https://colonnade.example', keys: [jwk], master_kids: ['k1'] }),
    }),
  );
  const good = {
    iss: masterTokenRules.issuer,
    aud: masterTokenRules.audience,
    sub: masterSubject('m1'),
    iat: nowS(),
    nbf: nowS(),
    exp: nowS() + 60,
    jti: 'token-1',
  };
  const sign = (claims: Readonly<Record<string, unknown>> = {}, typ: string = masterTokenRules.typ) =>
    new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'EdDSA', typ, kid: 'k1' }).sign(privateKey);
  return { good, sign, check: async (token: string) => verify(token) };
}

test('a token of a master is good under the rules that KMS and merger go by, and no other is', async () => {
  const { good, sign, check } = await setUp();
  assert.equal((await check(await sign())).tokenId, 'token-1');
  assert.equal((await check(await sign({ exp: nowS() - 2 }))).tokenId, 'token-1');
  const bad = [
    await sign({}, 'JWT'),
    await sign({ iss: 'other' }),
    await sign({ aud: 'other' }),
    await sign({ exp: nowS() - 10 }),
    await sign({ nbf: nowS() + 30 }),
  ];
  for (const claim of Object.keys(good)) bad.push(await sign({ [claim]: undefined }));
  for (const token of bad) {
    await assert.rejects(check(token), (e) => e instanceof ColonnadeError && e.code === 'unauthorized');
  }
});

test('mutants of good tokens are refused, whatever was changed and however it is spelt', async () => {
  const { sign, check } = await setUp();
  await assertMutantsRefused([await sign(), await sign({ sub: masterSubject('m2') })], check, 1000);
});
