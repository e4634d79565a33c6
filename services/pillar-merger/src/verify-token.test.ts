import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BRIDGE_AUDIENCE,
  ColonnadeError,
  type ErrorCode,
  IDENTITY_ISSUER,
  JWKS_MAX_AGE_MS,
  type Jwks,
  MASTER_TOKEN_TYP,
  masterSubject,
  WORKLOAD_AUDIENCE,
  WORKLOAD_TOKEN_TYP,
} from '@colonnade/contracts';
import { createKeySet } from '@colonnade/identity';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { assertMutantsRefused } from '../../../test/support/fuzz.ts';
import { createTokenVerifier } from './verify-token.ts';

type Changes = {
  typ?: string;
  kid?: string;
  iss?: string;
  aud?: string;
  sub?: string;
  jti?: string | undefined;
  exp?: number;
  nbf?: number;
};

/** A KMS's keys, and tokens signed with them. */
async function createKeys() {
  const names: string[] = [];
  const pairs = new Map<string, Awaited<ReturnType<typeof generateKeyPair>>>();
  let fetches = 0;
  let away = false;
  const add = async (kid: string): Promise<void> => {
    names.push(kid);
    pairs.set(kid, await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true }));
  };
  const fetchKeys = async (): Promise<Jwks> => {
    fetches += 1;
    if (away) throw new ColonnadeError('unavailable', 'away');
    const jwks = names.map(async (kid) => {
      const { x } = await exportJWK((pairs.get(kid) ?? assert.fail()).publicKey);
      return { kty: 'OKP', crv: 'Ed25519', x: String(x), kid, use: 'sig', alg: 'EdDSA' } as const;
    });
    const keys = await Promise.all(jwks);
    return { issuer: 'https://colonnade.example', keys, master_kids: [...names] };
  };
  const sign = async (changes: Changes = {}): Promise<string> => {
    const { typ = MASTER_TOKEN_TYP, kid = 'k1', iss = IDENTITY_ISSUER, aud = BRIDGE_AUDIENCE } = changes;
    const { sub = masterSubject('m1'), exp = Math.floor(Date.now() / 1000) + 60 } = changes;
    const { nbf = 0 } = changes;
    const jti = 'jti' in changes ? changes.jti : 'token-1';
    const token = new SignJWT(jti === undefined ? {} : { jti })
      .setProtectedHeader({ alg: 'EdDSA', typ, kid })
      .setIssuer(iss)
      .setAudience(aud)
      .setSubject(sub)
      .setIssuedAt()
      .setNotBefore(nbf)
      .setExpirationTime(exp);
    return token.sign((pairs.get(kid) ?? (await generateKeyPair('EdDSA'))).privateKey);
  };
  const setAway = (is: boolean): void => {
    away = is;
  };
  const drop = (kid: string): void => void names.splice(names.indexOf(kid), 1);
  await add('k1');
  return { drop, add, fetchKeys, sign, fetches: () => fetches, setAway };
}

const codeOf = async (work: Promise<unknown>): Promise<ErrorCode | undefined> =>
  work.then(
    () => undefined,
    (thrown) => (thrown as ColonnadeError).code,
  );

test('a token of the KMS for this master is good, and only that', async () => {
  const keys = await createKeys();
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys }));
  assert.deepEqual(await verify(await keys.sign(), 'm1'), { tokenId: 'token-1' });
  const now = Math.floor(Date.now() / 1000);
  const bad: Changes[] = [
    { typ: 'JWT' },
    { nbf: now + 30 },
    { iss: 'someone' },
    { aud: 'crypto-kms' },
    { sub: masterSubject('m2') },
    { sub: 'm1' },
    { jti: undefined },
    { exp: now - 60 },
    { kid: 'unknown' },
  ];
  for (const changes of bad) {
    assert.equal(
      await codeOf(verify(await keys.sign(changes), 'm1')),
      'unauthorized',
      JSON.stringify(changes),
    );
  }
  for (const text of ['', 'x', 'a.b.c', `${await keys.sign()}x`])
    assert.equal(await codeOf(verify(text, 'm1')), 'unauthorized');
});

test('a token that was good once expires, and is of one master however often it was seen', async () => {
  const keys = await createKeys();
  let nowMs = Date.now();
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys }), () => nowMs);
  const token = await keys.sign({ exp: Math.floor(nowMs / 1000) + 30 });
  await verify(token, 'm1');
  assert.equal(await codeOf(verify(token, 'm2')), 'unauthorized');
  nowMs += 60_000;
  assert.equal(await codeOf(verify(token, 'm1')), 'unauthorized');
});

test('a new key is found by one more read; unknown keys cannot make many', async () => {
  const keys = await createKeys();
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys, cooldownMs: 0 }));
  await verify(await keys.sign(), 'm1');
  await keys.add('k2');
  await verify(await keys.sign({ kid: 'k2' }), 'm1');
  assert.equal(keys.fetches(), 2);
  const slow = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys, cooldownMs: 60_000 }));
  await slow(await keys.sign(), 'm1');
  const before = keys.fetches();
  for (let i = 0; i < 20; i++)
    assert.equal(await codeOf(slow(await keys.sign({ kid: `u${i}` }), 'm1')), 'unauthorized');
  assert.equal(keys.fetches(), before);
});

test('everyone who needs the keys at once shares one read', async () => {
  const keys = await createKeys();
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys }));
  const token = await keys.sign();
  await Promise.all(Array.from({ length: 50 }, () => verify(token, 'm1')));
  assert.equal(keys.fetches(), 1);
});

test('keys that cannot be read: kms_unavailable; once read they serve on without the KMS', async () => {
  const keys = await createKeys();
  keys.setAway(true);
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys, cooldownMs: 0, maxAgeMs: 0 }));
  assert.equal(await codeOf(verify(await keys.sign(), 'm1')), 'kms_unavailable');
  keys.setAway(false);
  await verify(await keys.sign(), 'm1');
  keys.setAway(true);
  await verify(await keys.sign({ jti: 'token-2' }), 'm1');
});

test("a master's identity is good in place of its token, by the id of its enrolment, and nobody else's is", async () => {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const { x } = await exportJWK(pair.publicKey);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: String(x), kid: 'w1', use: 'sig', alg: 'EdDSA' } as const;
  const issuer = 'https://colonnade.example';
  const keys = createKeySet({ fetchKeys: async () => ({ issuer, keys: [jwk], master_kids: [] }) });
  const verify = createTokenVerifier(keys);
  const sign = (workload: object, sub: string, sid?: string) =>
    new SignJWT({ colonnade: workload, ...(sid === undefined ? {} : { sid }) })
      .setProtectedHeader({ alg: 'EdDSA', typ: WORKLOAD_TOKEN_TYP, kid: 'w1' })
      .setIssuer(issuer)
      .setAudience(WORKLOAD_AUDIENCE)
      .setSubject(sub)
      .setJti('jti-of-one-token')
      .setIssuedAt()
      .setNotBefore(0)
      .setExpirationTime('5m')
      .sign(pair.privateKey);
  const master = { kind: 'master', master: 'm1' };
  const sid = 'enrolment-00000001';
  const good = await sign(master, masterSubject('m1'), sid);
  assert.deepEqual(await verify(good, 'm1'), { tokenId: sid });
  assert.deepEqual(await verify(good, 'm1'), { tokenId: sid });
  assert.equal(await codeOf(verify(good, 'm2')), 'unauthorized');
  const task = { kind: 'task', task: 't1', template: 'deploy', owner: 'ann' };
  for (const bad of [
    await sign(master, masterSubject('m1')),
    await sign(master, masterSubject('m2'), sid),
    await sign(task, 'task:t1', sid),
    await sign({ kind: 'minion', master: 'm1', minion: 'web-1' }, 'minion:m1:web-1', sid),
  ])
    assert.equal(await codeOf(verify(bad, 'm1')), 'unauthorized');
});

test('mutants of good tokens are refused, whatever was changed and however it is spelt', async () => {
  const keys = await createKeys();
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys }));
  const genuine = [await keys.sign(), await keys.sign({ sub: masterSubject('m2') })];
  await verify(genuine[0] as string, 'm1');
  await assertMutantsRefused(genuine, (token) => verify(token, 'm1'), 1000);
});

test('a token that was good is not any more once its key is gone, though it was seen before', async () => {
  const keys = await createKeys();
  let now = 0;
  const verify = createTokenVerifier(createKeySet({ fetchKeys: keys.fetchKeys, nowMs: () => now }));
  const token = await keys.sign();
  await verify(token, 'm1');
  keys.drop('k1');
  await verify(token, 'm1');
  now += JWKS_MAX_AGE_MS + 1;
  assert.equal(await codeOf(verify(token, 'm1')), 'unauthorized');
});

test('a key of identities makes no token of a master, and that of masters no identity', async () => {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const { x } = await exportJWK(pair.publicKey);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: String(x), kid: 'k', use: 'sig', alg: 'EdDSA' } as const;
  const issuer = 'https://colonnade.example';
  const sign = (typ: string, iss: string, aud: string) =>
    new SignJWT({ sid: 'enrolment-00000001', colonnade: { kind: 'master', master: 'm1' } })
      .setProtectedHeader({ alg: 'EdDSA', typ, kid: 'k' })
      .setIssuer(iss)
      .setAudience(aud)
      .setSubject(masterSubject('m1'))
      .setJti('jti-of-one-token')
      .setIssuedAt()
      .setNotBefore(0)
      .setExpirationTime('5m')
      .sign(pair.privateKey);
  const made = await sign(MASTER_TOKEN_TYP, IDENTITY_ISSUER, BRIDGE_AUDIENCE);
  const identity = await sign(WORKLOAD_TOKEN_TYP, issuer, WORKLOAD_AUDIENCE);
  for (const [master_kids, good, bad] of [
    [['k'], made, identity],
    [[], identity, made],
  ] as const) {
    const fetchKeys = async () => ({ issuer, keys: [jwk], master_kids: [...master_kids] });
    const verify = createTokenVerifier(createKeySet({ fetchKeys }));
    assert.equal(await codeOf(verify(good, 'm1')), undefined);
    assert.equal(await codeOf(verify(bad, 'm1')), 'unauthorized');
  }
});
