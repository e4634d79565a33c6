import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, sign as signBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BRIDGE_AUDIENCE, ColonnadeError, IDENTITY_ISSUER, MASTER_TOKEN_TYP } from '@colonnade/contracts';
import { type JWTPayload, SignJWT } from 'jose';
import { type IdentityKeys, loadIdentityKeys } from './identity-keys.ts';
import { createMasterTokens, type MasterTokens } from './master-token.ts';
import { openRevocations, type Revocations } from './revocations.ts';

let dir: string;
let keys: IdentityKeys;
let revocations: Revocations;
let tokens: MasterTokens;
let now = 1_800_000_000;

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'colonnade-tokens-'));
  const state = path.join(dir, 'state');
  revocations = await openRevocations(state, () => now);
  keys = await loadIdentityKeys(state);
  tokens = createMasterTokens(keys, revocations, () => now);
});
after(() => rm(dir, { recursive: true }));

const claims = (): JWTPayload => ({
  iss: IDENTITY_ISSUER,
  sub: 'master:m1',
  aud: BRIDGE_AUDIENCE,
  iat: now,
  nbf: now,
  exp: now + 60,
  jti: 'c0ffee00-0000-4000-8000-000000000000',
});

function sign(over: { claims?: JWTPayload; header?: object; key?: KeyObject } = {}): Promise<string> {
  const header = { alg: 'EdDSA', typ: MASTER_TOKEN_TYP, kid: keys.active.kid, ...over.header };
  return new SignJWT({ ...claims(), ...over.claims })
    .setProtectedHeader(header)
    .sign(over.key ?? keys.active.privateKey);
}

const b64 = (data: object | string) =>
  Buffer.from(typeof data === 'string' ? data : JSON.stringify(data)).toString('base64url');

/** For what the library does not want to sign. */
function signByHand(header: object): string {
  const head = `${b64({ alg: 'EdDSA', typ: MASTER_TOKEN_TYP, kid: keys.active.kid, ...header })}.${b64(claims())}`;
  return `${head}.${signBytes(null, Buffer.from(head), keys.active.privateKey).toString('base64url')}`;
}

async function outcome(token: string, master = 'm1'): Promise<string> {
  try {
    await tokens.verify(token, master);
    return 'good';
  } catch (thrown) {
    assert.ok(thrown instanceof ColonnadeError);
    assert.equal(thrown.code, 'unauthorized');
    return thrown.message.replace("the master's token ", '');
  }
}

test('one of ours is good, each time and for its master alone', async () => {
  const { token } = await tokens.issue('m1', 60);
  assert.equal(await outcome(token), 'good');
  assert.equal(await outcome(token), 'good');
  assert.equal(await outcome(signByHand({})), 'good');
  assert.equal(await outcome(token, 'm2'), "is another master's");
  assert.equal(await outcome(token, 'M1'), "is another master's");
});

describe('a forged or wrong one is refused', () => {
  const hmac = (secret: string | Buffer) => {
    const head = `${b64({ alg: 'HS256', typ: MASTER_TOKEN_TYP, kid: keys.active.kid })}.${b64(claims())}`;
    return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`;
  };
  const publicKey = () => keys.publicKey(keys.active.kid) as KeyObject;
  const table: [string, () => Promise<string> | string, RegExp][] = [
    ['alg none', () => `${b64({ alg: 'none', typ: MASTER_TOKEN_TYP })}.${b64(claims())}.`, /not a token/u],
    [
      'HMAC with the public key as PEM',
      () => hmac(publicKey().export({ format: 'pem', type: 'spki' })),
      /not a token/u,
    ],
    ['HMAC with the public key itself', () => hmac(keys.jwks.keys[0]?.x as string), /not a token/u],
    [
      'another key under our kid',
      () => sign({ key: generateKeyPairSync('ed25519').privateKey }),
      /not a token/u,
    ],
    ['another kid', () => sign({ header: { kid: 'x' } }), /unknown key/u],
    ['no kid', () => sign({ header: { kid: undefined } }), /unknown key/u],
    [
      'a key of its own in the header',
      () => sign({ header: { kid: 'x', jwk: keys.jwks.keys[0] } }),
      /unknown key/u,
    ],
    ['another typ', () => sign({ header: { typ: 'JWT' } }), /"typ"/u],
    ['no typ', () => sign({ header: { typ: undefined } }), /"typ"/u],
    ['a critical header nobody knows', () => signByHand({ crit: ['x'], x: 1 }), /not a token/u],
    [
      'two claims sets, one after the other',
      () => signByHand({}).replace(/\.[^.]*\./u, (part) => `${part.slice(0, -1)}${part.slice(1)}`),
      /not a token/u,
    ],
    ['another issuer', () => sign({ claims: { iss: 'x' } }), /"iss"/u],
    ['another audience', () => sign({ claims: { aud: 'crypto-kms' } }), /"aud"/u],
    ['no audience', () => sign({ claims: { aud: undefined } }), /"aud"/u],
    ['no expiry', () => sign({ claims: { exp: undefined } }), /"exp"/u],
    ['no jti', () => sign({ claims: { jti: undefined } }), /"jti"/u],
    ['expired', () => sign({ claims: { exp: now - 6 } }), /expired/u],
    ['not valid yet', () => sign({ claims: { nbf: now + 60 } }), /"nbf"/u],
    ['another kind of subject', () => sign({ claims: { sub: 'minion:m1' } }), /another master's/u],
    ['a subject that goes on', () => sign({ claims: { sub: 'master:m1:x' } }), /another master's/u],
    ['a jti that is a path', () => sign({ claims: { jti: '../identity-key.json' } }), /revoked/u],
    ['truncated', async () => (await sign()).slice(0, -1), /not a token/u],
    [
      'without its signature',
      async () => `${(await sign()).split('.').slice(0, 2).join('.')}.`,
      /not a token/u,
    ],
    ['doubled', async () => `${await sign()}.${await sign()}`, /not a token/u],
    ['with white space', async () => ` ${await sign()}`, /not a token/u],
    [
      'the claims of another',
      async () => {
        const [a, b] = [(await sign()).split('.'), (await sign({ claims: { sub: 'master:m2' } })).split('.')];
        return [a[0], b[1], a[2]].join('.');
      },
      /not a token/u,
    ],
    ['empty', () => '', /not a token/u],
  ];
  for (const [name, make, message] of table) {
    test(name, async () => assert.match(await outcome(await make()), message));
  }
});

test('one that was good is refused once it has expired or is revoked', async () => {
  const first = await tokens.issue('m1', 60);
  const second = await tokens.issue('m1', 600);
  assert.equal(await outcome(first.token), 'good');
  assert.equal(await outcome(second.token), 'good');
  now += 64;
  assert.equal(await outcome(first.token), 'good', 'within the skew of two clocks');
  now += 1;
  assert.equal(await outcome(first.token), 'has expired');
  await revocations.revoke(second.jti, now + 600);
  assert.equal(await outcome(second.token), 'is revoked');
  const again = createMasterTokens(
    await loadIdentityKeys(path.join(dir, 'state')),
    await openRevocations(path.join(dir, 'state'), () => now),
    () => now,
  );
  await assert.rejects(again.verify(second.token, 'm1'), /is revoked/u);
});

test('revocations are forgotten when no token can need them any more', async () => {
  const jti = 'deadbeef-0000-4000-8000-000000000000';
  await revocations.revoke(jti, now + 10);
  assert.equal(revocations.isRevoked(jti), true);
  now += 11;
  await revocations.revoke('deadbeef-0000-4000-8000-000000000001', now + 10);
  assert.equal(revocations.isRevoked(jti), false);
  await assert.rejects(revocations.revoke('../../etc/passwd-long-enough', now), /jti is not one/u);
});

test('a state folder that is gone does not read as "nothing is revoked"', async () => {
  const lost = path.join(dir, 'lost');
  const gone = await openRevocations(lost, () => now);
  assert.equal(gone.isRevoked('deadbeef-0000-4000-8000-000000000000'), false);
  await rm(lost, { recursive: true });
  assert.throws(() => gone.isRevoked('deadbeef-0000-4000-8000-000000000000'), { code: 'unavailable' });
});
