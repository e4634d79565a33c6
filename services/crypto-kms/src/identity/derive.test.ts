import assert from 'node:assert/strict';
import { createSecretKey, hkdfSync, randomBytes, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { deriveEd25519, deriveP256, toScalar } from './derive.ts';

const SEED = createSecretKey(Buffer.from('07'.padStart(64, '0'), 'hex'));
const VECTOR = [
  'u2rA5WAhkMxrJEY-0lypaLN-oixFmGMzWY4huz1Yy1M',
  'NsWIsCZrcG1ODQTum4wA_BSUZFLiKJDN8YB6Rtp5l9Q',
  'U7aHK8VjFHDFo5OHH6vVaWy4V6zbaYJjNrOlE-fnKOc',
];
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const toBytes = (number: bigint) => Buffer.from(number.toString(16).padStart(80, '0'), 'hex');
const toNumber = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

// Made with the Python package cryptography (HKDF, Ed25519PrivateKey.from_private_bytes, derive_private_key).
test('a seed gives the keys another implementation gives', async () => {
  const { jwk: ed25519, kid } = await deriveEd25519(SEED);
  const { jwk: p256 } = await deriveP256(SEED);
  assert.deepEqual([ed25519.x, p256.x, 'y' in p256 && p256.y], VECTOR);
  assert.equal(kid, ed25519.kid);
});

test('each key signs, verifies, and tells nothing of the other or of the seed', async () => {
  const data = Buffer.from('anything');
  for (const derive of [deriveEd25519, deriveP256]) {
    const { privateKey, publicKey, alg } = await derive(SEED);
    const hash = alg === 'EdDSA' ? undefined : 'sha256';
    assert.ok(verify(hash, data, publicKey, sign(hash, data, privateKey)));
  }
  const { d } = (await deriveEd25519(SEED)).privateKey.export({ format: 'jwk' });
  const { d: scalar } = (await deriveP256(SEED)).privateKey.export({ format: 'jwk' });
  const seed = SEED.export().toString('base64url');
  assert.equal(new Set([d, scalar, seed]).size, 3);
});

test('the same seed gives the same keys, another one others', async () => {
  const again = createSecretKey(SEED.export());
  const other = createSecretKey(randomBytes(32));
  for (const derive of [deriveEd25519, deriveP256]) {
    assert.equal((await derive(again)).kid, (await derive(SEED)).kid);
    assert.notEqual((await derive(other)).kid, (await derive(SEED)).kid);
  }
});

test('a scalar is from 1 to n-1, at the edges too', () => {
  for (const [wide, scalar] of [
    [0n, 1n],
    [1n, 2n],
    [N - 2n, N - 1n],
    [N - 1n, 1n],
    [N, 2n],
    [2n ** 320n - 1n, ((2n ** 320n - 1n) % (N - 1n)) + 1n],
  ] as const)
    assert.equal(toNumber(toScalar(toBytes(wide))), scalar);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 40, maxLength: 40 }), (wide) => {
      const scalar = toScalar(wide);
      assert.equal(scalar.length, 32);
      assert.ok(toNumber(scalar) >= 1n && toNumber(scalar) < N);
    }),
  );
});

/** RFC 5869, A.1: what the runtime calls HKDF is that. */
test('HKDF is that of RFC 5869', () => {
  const okm = hkdfSync(
    'sha256',
    Buffer.from('0b'.repeat(22), 'hex'),
    Buffer.from('000102030405060708090a0b0c', 'hex'),
    Buffer.from('f0f1f2f3f4f5f6f7f8f9', 'hex'),
    42,
  );
  assert.equal(
    Buffer.from(okm).toString('hex'),
    '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
  );
});
