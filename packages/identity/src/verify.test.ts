import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import {
  ColonnadeError,
  WORKLOAD_AUDIENCE,
  WORKLOAD_LIFETIME_S,
  WORKLOAD_SKEW_S,
  WORKLOAD_TOKEN_TYP,
} from '@colonnade/contracts';
import fc from 'fast-check';
import { SignJWT } from 'jose';
import { createWorkloadVerifier, looksLikeWorkloadToken } from './verify.ts';

const ISSUER = 'https://colonnade.example';
const NOW_S = 1_800_000_000;
const ed25519 = generateKeyPairSync('ed25519');
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEYS = {
  e1: { alg: 'EdDSA', publicKey: ed25519.publicKey, privateKey: ed25519.privateKey },
  p1: { alg: 'ES256', publicKey: p256.publicKey, privateKey: p256.privateKey },
} as const;

const verify = createWorkloadVerifier({
  keys: { issuer: async () => ISSUER, find: async (kid) => KEYS[kid as keyof typeof KEYS] },
  audience: WORKLOAD_AUDIENCE,
  nowMs: () => NOW_S * 1000,
});

const WORKLOAD = { kind: 'task', task: 't1', template: 'deploy', owner: 'ann' };
const CLAIMS = {
  ...{ iss: ISSUER, sub: 'task:t1', aud: WORKLOAD_AUDIENCE, jti: randomUUID() },
  ...{ iat: NOW_S, nbf: NOW_S, exp: NOW_S + 60, colonnade: WORKLOAD },
};
const HEADER = { alg: 'EdDSA', kid: 'e1', typ: WORKLOAD_TOKEN_TYP };

const sign = (claims: object = {}, header: object = {}, key?: KeyObject): Promise<string> => {
  const head = { ...HEADER, ...header };
  const own = KEYS[head.kid as keyof typeof KEYS]?.privateKey ?? ed25519.privateKey;
  return new SignJWT({ ...CLAIMS, ...claims }).setProtectedHeader(head).sign(key ?? own);
};
const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const refuses = (token: string, why: string) =>
  assert.rejects(verify(token), (thrown: unknown) => {
    assert.ok(thrown instanceof ColonnadeError, `${why}: ${thrown}`);
    assert.equal(thrown.code, 'unauthorized', `${why}: ${thrown.message}`);
    // Whatever was sent is not repeated.
    for (const part of token.split('.')) assert.ok(part.length < 8 || !thrown.message.includes(part), why);
    return true;
  });

test('a token of either algorithm says whose it is', async () => {
  const identity = await verify(await sign());
  assert.deepEqual(identity.workload, WORKLOAD);
  assert.deepEqual([identity.sub, identity.expiresAtMs], ['task:t1', (NOW_S + 60) * 1000]);
  assert.deepEqual((await verify(await sign({}, { alg: 'ES256', kid: 'p1' }))).workload, WORKLOAD);
  assert.equal(looksLikeWorkloadToken(await sign()), true);
  assert.equal(looksLikeWorkloadToken(await sign({}, { typ: 'JWT' })), false);
});

test('no algorithm but the one of the key, and no shared secret', async () => {
  const payload = text(CLAIMS);
  await refuses(`${text({ ...HEADER, alg: 'none' })}.${payload}.`, 'none');
  for (const alg of ['HS256', 'HS512']) {
    const head = text({ ...HEADER, alg });
    const spki = ed25519.publicKey.export({ format: 'pem', type: 'spki' });
    for (const secret of [spki, JSON.stringify(ed25519.publicKey.export({ format: 'jwk' })), '']) {
      const mac = createHmac(alg === 'HS256' ? 'sha256' : 'sha512', secret).update(`${head}.${payload}`);
      await refuses(`${head}.${payload}.${mac.digest('base64url')}`, alg);
    }
  }
  await refuses(await sign({}, { alg: 'ES256' }, p256.privateKey), 'the key is for EdDSA');
  await refuses(await sign({}, { kid: 'p1' }, ed25519.privateKey), 'the key is for ES256');
  await refuses(await sign({}, { kid: 'e2' }), 'unknown key');
  await refuses(await sign({}, { kid: undefined }), 'no kid');
  await refuses(
    await sign({}, { jwk: ed25519.publicKey.export({ format: 'jwk' }), kid: undefined }),
    'own key',
  );
  await refuses(await sign({}, {}, generateKeyPairSync('ed25519').privateKey), 'another key');
});

test('every claim is there, fits, and is of now', async () => {
  for (const claim of Object.keys(CLAIMS)) await refuses(await sign({ [claim]: undefined }), `no ${claim}`);
  for (const aud of ['kubernetes', '', ['kubernetes'], [], 7])
    await refuses(await sign({ aud }), `aud ${aud}`);
  await refuses(await sign({ iss: `${ISSUER}/` }), 'iss');
  await refuses(await sign({}, { typ: 'colonnade-master+jwt' }), 'typ');
  await refuses(await sign({}, { typ: undefined }), 'no typ');
  await refuses(await sign({ sub: 'task:t2' }), 'the subject of another');
  await refuses(await sign({ colonnade: { ...WORKLOAD, task: 't2' } }), 'the workload of another');
  await refuses(await sign({ exp: NOW_S - WORKLOAD_SKEW_S - 1 }), 'expired');
  await refuses(await sign({ nbf: NOW_S + WORKLOAD_SKEW_S + 1 }), 'not yet');
  await refuses(await sign({ iat: NOW_S, exp: NOW_S + WORKLOAD_LIFETIME_S + 1 }), 'too long');
  await verify(await sign({ exp: NOW_S - WORKLOAD_SKEW_S + 1 }));
  await verify(await sign({ nbf: NOW_S + WORKLOAD_SKEW_S }));
  await verify(await sign({ aud: ['kubernetes', WORKLOAD_AUDIENCE] }));
});

test('a token that is cut, doubled or stretched anywhere is refused', async () => {
  const token = await sign();
  for (let at = 0; at < token.length; at += 1) await refuses(token.slice(0, at), `cut at ${at}`);
  const parts = token.split('.');
  const doubled = [token + token, `${token}.${token}`, `${token}.`, `.${token}`, `${token}.${parts[2]}`];
  for (const one of [...doubled, parts.toReversed().join('.'), `${token} `, `${token}\n`, `${token}=`])
    await refuses(one, 'doubled');
  await refuses('x'.repeat(100_000), 'long');
});

/** Anything JSON can hold, and what tends to break parsers. */
const anything = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom('', '0', -1, 1e308, '\u0000', '__proto__', 'task:t1', 'colonnade', null, [], {}, NOW_S),
);

test('whatever stands in a field, a token is good only when it is one', async () => {
  const field = fc.constantFrom(...Object.keys(CLAIMS), 'sid');
  await fc.assert(
    fc.asyncProperty(field, anything, async (name, value) => {
      const same = JSON.stringify((CLAIMS as Record<string, unknown>)[name]) === JSON.stringify(value);
      const token = await sign({ [name]: value });
      const identity = await verify(token).catch((thrown: unknown) => thrown as ColonnadeError);
      if (identity instanceof Error)
        return assert.equal(identity.code, 'unauthorized', String(identity.cause));
      // What may differ without being another's: times within their bounds, an id of its own, further audiences.
      assert.ok(
        same || ['iat', 'nbf', 'exp', 'jti', 'sid', 'aud'].includes(name),
        `${name}: ${JSON.stringify(value)}`,
      );
      assert.deepEqual(identity.workload, WORKLOAD);
    }),
    { numRuns: 500 },
  );
});

test('whatever stands in a field of the workload, it is that workload and no other', async () => {
  const field = fc.constantFrom('kind', 'task', 'template', 'owner', 'master', 'extra');
  await fc.assert(
    fc.asyncProperty(field, anything, async (name, value) => {
      const colonnade = { ...WORKLOAD, [name]: value };
      const identity = await verify(await sign({ colonnade })).catch(
        (thrown: unknown) => thrown as ColonnadeError,
      );
      if (identity instanceof Error)
        return assert.equal(identity.code, 'unauthorized', String(identity.cause));
      assert.deepEqual({ ...identity.workload }, colonnade);
      assert.equal(identity.sub, 'task:t1');
    }),
    { numRuns: 300 },
  );
});

test('whatever stands in the header, only the real one passes', async () => {
  const field = fc.constantFrom('alg', 'kid', 'typ', 'crit', 'b64', 'jwk', 'jku', 'x5c', 'zip');
  const real = await sign();
  const [, payload, signature] = real.split('.');
  await fc.assert(
    fc.asyncProperty(field, anything, async (name, value) => {
      const head = { ...HEADER, [name]: value };
      if (JSON.stringify(head) === JSON.stringify(HEADER)) return;
      await refuses(`${text(head)}.${payload}.${signature}`, name);
    }),
    { numRuns: 300 },
  );
});

test('no text at all brings more than a refusal', async () => {
  const part = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.base64String(),
    fc.constantFrom('e30', '', text(HEADER)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 5 }), async (parts) => refuses(parts.join('.'), 'text')),
    { numRuns: 300 },
  );
});

test('a token that was good once is so only until it expires, or its key is gone', async () => {
  const state = { nowMs: NOW_S * 1000, kids: ['e1'] as string[] };
  const own = createWorkloadVerifier({
    keys: {
      issuer: async () => ISSUER,
      find: async (kid) => (state.kids.includes(kid ?? '') ? KEYS[kid as keyof typeof KEYS] : undefined),
    },
    audience: WORKLOAD_AUDIENCE,
    nowMs: () => state.nowMs,
  });
  const token = await sign();
  for (let at = 0; at < 3; at += 1) assert.equal((await own(token)).sub, 'task:t1');
  state.kids = [];
  await assert.rejects(own(token), { code: 'unauthorized' });
  state.kids = ['e1'];
  assert.equal((await own(token)).sub, 'task:t1');
  state.nowMs = (CLAIMS.exp + WORKLOAD_SKEW_S + 1) * 1000;
  await assert.rejects(own(token), { code: 'unauthorized' });
});
