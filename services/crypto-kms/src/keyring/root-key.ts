import { createCipheriv, createDecipheriv, createHmac, type KeyObject, randomBytes } from 'node:crypto';
import { ColonnadeError, int } from '@colonnade/contracts';
import { z } from 'zod';
import { decodeBase64, KEY_BYTES, NONCE_BYTES, TAG_BYTES } from '../enc-format.ts';

/** What every key of the keyring is sealed with. It seals nothing else, and never leaves this service. */
export type RootKey = { id: string; key: KeyObject };

/** A key of the keyring as it lies on the disk. */
export const zSealedKey = z.strictObject({
  v: int({ min: 1, max: 1 }),
  root: z.string(),
  nonce_b64: z.string(),
  ct_b64: z.string(),
});
export type SealedKey = z.output<typeof zSealedKey>;

const ALGORITHM = 'aes-256-gcm';
const OPTIONS = { authTagLength: TAG_BYTES };

/** Names a root key without telling anything of it, so that a file says which one it needs. */
export function toRootKey(key: KeyObject): RootKey {
  const id = createHmac('sha256', key).update('colonnade root key id').digest('hex').slice(0, 16);
  return { id, key };
}

/** @param context what the key is, so that no file can stand in for another */
export function sealKey(root: RootKey, context: string, bytes: Uint8Array): SealedKey {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, root.key, nonce, OPTIONS);
  cipher.setAAD(aadOf(root, context));
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  return { v: 1, root: root.id, nonce_b64: nonce.toString('base64'), ct_b64: sealed.toString('base64') };
}

/**
 * @returns the bytes of the key, for the caller to fill after use
 * @throws ColonnadeError `misconfigured`: another root key, or a file that was changed
 */
export function openKey(root: RootKey, context: string, sealed: SealedKey): Buffer {
  if (sealed.root !== root.id)
    throw fault(context, `is sealed by the root key ${sealed.root}, and the root key given is ${root.id}`);
  const nonce = decodeBase64(sealed.nonce_b64);
  const bytes = decodeBase64(sealed.ct_b64);
  if (nonce?.length !== NONCE_BYTES || bytes?.length !== KEY_BYTES + TAG_BYTES)
    throw fault(context, 'is not a sealed key');
  const decipher = createDecipheriv(ALGORITHM, root.key, nonce, OPTIONS);
  decipher.setAAD(aadOf(root, context));
  decipher.setAuthTag(bytes.subarray(KEY_BYTES));
  const opened = decipher.update(bytes.subarray(0, KEY_BYTES));
  try {
    decipher.final();
    return opened;
  } catch {
    opened.fill(0);
    throw fault(context, 'does not open: it was changed, or belongs elsewhere');
  }
}

function aadOf(root: RootKey, context: string): Buffer {
  return Buffer.from(`colonnade-keyring:${root.id}:${context}`, 'utf8');
}

function fault(context: string, why: string): ColonnadeError {
  return new ColonnadeError('misconfigured', `the key ${context} ${why}`);
}
