import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import path from 'node:path';
import { ColonnadeError, type PublicJwk } from '@colonnade/contracts';
import { calculateJwkThumbprint } from 'jose';
import { z } from 'zod';
import { createStateFile, readStateFile } from './state-dir.ts';

/** The keys identities are signed with: one signs, all verify. They are never the KEK. */
export type IdentityKeys = {
  active: { kid: string; privateKey: KeyObject };
  publicKey(kid: string | undefined): KeyObject | undefined;
  /** RFC 7517, without anything private. */
  jwks: { keys: PublicJwk[] };
};

const zPrivateJwk = z.strictObject({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string().length(43),
  d: z.string().length(43),
  /** RFC 7638 thumbprint. */
  kid: z.string(),
});
const zKeyFile = z.strictObject({
  format: z.literal('colonnade-identity-key/1'),
  active: z.string(),
  keys: z.array(zPrivateJwk).min(1),
});

/**
 * Loads `identity-key.json` of the state folder, and makes it at the first start. Processes that start at once end with
 * the same key.
 * @throws ColonnadeError `misconfigured` for a file that is broken or open to others; it is left as it is
 */
export async function loadIdentityKeys(stateDir: string): Promise<IdentityKeys> {
  const file = path.join(stateDir, 'identity-key.json');
  let content = await readStateFile(file, zKeyFile);
  if (content === undefined) {
    const first = await makePrivateJwk();
    await createStateFile(file, zKeyFile, {
      format: 'colonnade-identity-key/1',
      active: first.kid,
      keys: [first],
    });
    // Whoever was first: this is the key now.
    content = await readStateFile(file, zKeyFile);
  }
  if (content === undefined)
    throw new ColonnadeError('misconfigured', `${file} vanished while the service started`);
  return toIdentityKeys(file, content);
}

async function toIdentityKeys(file: string, content: z.output<typeof zKeyFile>): Promise<IdentityKeys> {
  const publicKeys = new Map<string, KeyObject>();
  const keys: PublicJwk[] = [];
  let active: KeyObject | undefined;
  for (const jwk of content.keys) {
    const privateKey = toPrivateKey(file, jwk);
    const publicKey = createPublicKey(privateKey);
    const { x } = publicKey.export({ format: 'jwk' });
    if (x !== jwk.x || (await thumbprint(jwk.x)) !== jwk.kid)
      throw new ColonnadeError('misconfigured', `${file}: the parts of a key do not fit each other`);
    publicKeys.set(jwk.kid, publicKey);
    keys.push({ kty: 'OKP', crv: 'Ed25519', x: jwk.x, kid: jwk.kid, use: 'sig', alg: 'EdDSA' });
    if (jwk.kid === content.active) active = privateKey;
  }
  if (active === undefined)
    throw new ColonnadeError('misconfigured', `${file}: the active key is not among the keys`);
  return {
    active: { kid: content.active, privateKey: active },
    publicKey: (kid) => (kid === undefined ? undefined : publicKeys.get(kid)),
    jwks: { keys },
  };
}

function toPrivateKey(file: string, jwk: z.output<typeof zPrivateJwk>): KeyObject {
  try {
    return createPrivateKey({ format: 'jwk', key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x, d: jwk.d } });
  } catch {
    // Without the cause: it might quote the key.
    throw new ColonnadeError('misconfigured', `${file}: the parts of a key do not fit each other`);
  }
}

async function makePrivateJwk(): Promise<z.output<typeof zPrivateJwk>> {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined)
    throw new ColonnadeError('internal', 'the runtime made no Ed25519 key');
  return { kty: 'OKP', crv: 'Ed25519', x, d, kid: await thumbprint(x) };
}

function thumbprint(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x });
}
