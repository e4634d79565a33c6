import { createECDH, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { PublicJwk } from '@colonnade/contracts';
import { calculateJwkThumbprint } from 'jose';

/** One key that identities are signed with, and what everybody may know of it. `kid` is its RFC 7638 thumbprint. */
export type SigningKey = {
  alg: 'EdDSA' | 'ES256';
  kid: string;
  privateKey: KeyObject;
  publicKey: KeyObject;
  jwk: PublicJwk;
};

/** Order of the group P-256 (SP 800-186). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** 64 bits more than the order has: what the reduction makes uneven is below 2^-64 (FIPS 186-5, A.2.1). */
const P256_WIDE_BYTES = 40;
/** PKCS #8 of an Ed25519 key is this and the seed (RFC 8410). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SALT = 'colonnade/identity/v1';

/**
 * The Ed25519 key of a version of the keyring's key for identities (seed 003). RFC 5869 with an own `info` for each
 * algorithm: neither tells anything of the other, or of the key both come from.
 */
export async function deriveEd25519(seed: KeyObject): Promise<SigningKey> {
  const bytes = expand(seed, 'Ed25519', 32);
  const der = Buffer.concat([ED25519_PKCS8, bytes]);
  try {
    const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey(privateKey);
    const { x = '' } = publicKey.export({ format: 'jwk' });
    const kid = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
    const jwk = { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' } as const;
    return { alg: 'EdDSA', kid, privateKey, publicKey, jwk };
  } finally {
    bytes.fill(0);
    der.fill(0);
  }
}

/** The P-256 key of the same version: a scalar from 1 to n-1, by wide reduction (FIPS 186-5, A.2.1: extra random bits). */
export async function deriveP256(seed: KeyObject): Promise<SigningKey> {
  const wide = expand(seed, 'P-256', P256_WIDE_BYTES);
  const scalar = toScalar(wide);
  const ecdh = createECDH('prime256v1');
  try {
    ecdh.setPrivateKey(scalar);
    const point = ecdh.getPublicKey();
    const x = point.subarray(1, 33).toString('base64url');
    const y = point.subarray(33).toString('base64url');
    const d = scalar.toString('base64url');
    const privateKey = createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x, y, d } });
    const kid = await calculateJwkThumbprint({ kty: 'EC', crv: 'P-256', x, y });
    const jwk = { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' } as const;
    return { alg: 'ES256', kid, privateKey, publicKey: createPublicKey(privateKey), jwk };
  } finally {
    wide.fill(0);
    scalar.fill(0);
  }
}

/** (wide mod (n-1)) + 1, 32 bytes, big-endian. */
export function toScalar(wide: Uint8Array): Buffer {
  const number = (BigInt(`0x${Buffer.from(wide).toString('hex')}`) % (P256_ORDER - 1n)) + 1n;
  return Buffer.from(number.toString(16).padStart(64, '0'), 'hex');
}

function expand(seed: KeyObject, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, SALT, `sign ${info}`, bytes));
}
