import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/** What a sealed value is at least: a key of its own, wrapped, and the value under it; base64. */
export type Envelope = { aad: string; nonce: string; ct: string; wrapNonce: string; wrapped: string };

const TAG = { authTagLength: 16 };

export function kekOf(base64: string): KeyObject {
  return createSecretKey(Buffer.from(base64, 'base64'));
}

export function makeEnvelope(kek: KeyObject, aad: string, plaintext: string): Envelope {
  const dek = randomBytes(32);
  const [nonce, wrapNonce] = [randomBytes(12), randomBytes(12)];
  return {
    aad,
    nonce: nonce.toString('base64'),
    ct: encrypt(createSecretKey(dek), nonce, aad, Buffer.from(plaintext)),
    wrapNonce: wrapNonce.toString('base64'),
    wrapped: encrypt(kek, wrapNonce, aad, dek),
  };
}

/** Two AES-256-GCM operations with `KeyObject`s, and nothing beside them. */
export function openEnvelope(kek: KeyObject, { aad, nonce, ct, wrapNonce, wrapped }: Envelope): Buffer {
  const dek = createSecretKey(decrypt(kek, wrapNonce, aad, wrapped));
  return decrypt(dek, nonce, aad, ct);
}

function encrypt(key: KeyObject, nonce: Buffer, aad: string, plaintext: Buffer): string {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, TAG).setAAD(Buffer.from(aad));
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]).toString('base64');
}

function decrypt(key: KeyObject, nonce: string, aad: string, sealed: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64'), TAG);
  decipher.setAAD(Buffer.from(aad)).setAuthTag(bytes.subarray(-16));
  const plaintext = decipher.update(bytes.subarray(0, -16));
  decipher.final();
  return plaintext;
}
