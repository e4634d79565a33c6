import { createCipheriv, createDecipheriv, type KeyObject, randomBytes, randomFillSync } from 'node:crypto';
import { ColonnadeError, dekWrapAad, type Enc, LIMITS } from '@colonnade/contracts';
import { canonicalBytes, parseValue, type Value, ValueError } from '@colonnade/value';
import {
  KEY_BYTES,
  NONCE_BYTES,
  readSealed,
  readWrapping,
  type SealedParts,
  TAG_BYTES,
} from './enc-format.ts';

/** The key that wraps every DEK, with its name. */
export type Kek = { kid: string; key: KeyObject };

/** The keys there are: one seals, all open. */
export type Keys = {
  /** @throws ColonnadeError `key_not_configured` */
  active(): Kek;
  find(kid: string): Kek | undefined;
  /**
   * Before so many values are sealed: sees to it that the active key is the one that is active now, and counts.
   * @throws ColonnadeError `unavailable`
   */
  prepare(encryptions: number): Promise<void>;
};

const ALGORITHM = 'aes-256-gcm';
const OPTIONS = { authTagLength: TAG_BYTES };
/** A value sits a few levels below the top of the message that carries it. */
const OPENED_LIMITS = { maxDepth: LIMITS.messageDepth - 8 };

/**
 * Seals a value (seed 000, envelope encryption): a fresh DEK and fresh nonces each time, so two sealings of one value
 * differ. The bytes that are sealed are the canonical ones.
 * @param aad the data AAD of the pillar
 */
export function sealValue(keys: Pick<Keys, 'active'>, aad: string, value: Value): Enc {
  const kek = keys.active();
  const plaintext = canonicalBytes(value);
  try {
    return sealBytes(kek, aad, plaintext);
  } finally {
    plaintext.fill(0);
  }
}

function sealBytes(kek: Kek, aad: string, plaintext: Uint8Array): Enc {
  // Not from the shared pool: a pooled slice would lie beside buffers that others may read.
  const dek = Buffer.allocUnsafeSlow(KEY_BYTES);
  try {
    randomFillSync(dek);
    const nonce = randomBytes(NONCE_BYTES);
    const wrapNonce = randomBytes(NONCE_BYTES);
    return {
      $enc: {
        v: 1,
        alg: 'A256GCM',
        kid: kek.kid,
        nonce_b64: nonce.toString('base64'),
        ct_b64: encrypt(dek, nonce, aad, plaintext),
        dek_wrap_alg: 'A256GCM',
        dek_wrap_nonce_b64: wrapNonce.toString('base64'),
        dek_wrapped_b64: encrypt(kek.key, wrapNonce, dekWrapAad(kek.kid, aad), dek),
      },
    };
  } finally {
    dek.fill(0);
  }
}

/**
 * Opens a sealed value under exactly this AAD (seed 000).
 * @throws ColonnadeError `value_invalid` (form), `kid_unknown`, `decrypt_failed`: which of key, nonce, AAD, ciphertext
 * or tag did not fit is not said, and not known
 */
export function openValue(keys: Keys, aad: string, sealed: Value): Value {
  return withPlaintext(keys, aad, sealed, parsePlaintext);
}

/**
 * Seals what was sealed under one AAD under another, with a DEK of its own and by the key that seals now; byte for byte, whatever form
 * it was kept in.
 * @throws ColonnadeError as openValue
 */
export function resealValue(keys: Keys, aad: { from: string; to: string }, sealed: Value): Enc {
  return withPlaintext(keys, aad.from, sealed, (plaintext) => sealBytes(keys.active(), aad.to, plaintext));
}

/** How the DEK of a sealed value is wrapped: the part of `$enc` that a change of the KEK changes. */
export type Wrapping = Pick<Enc['$enc'], 'kid' | 'dek_wrap_nonce_b64' | 'dek_wrapped_b64'>;

/**
 * Wraps the DEK of a value anew, under the key that seals now. The value itself is not looked at, and neither it nor its place
 * changes: the wrapping opens under exactly this AAD, and the new one is good for no other.
 * @throws ColonnadeError as openValue
 */
export function rewrapDek(keys: Keys, aad: string, wrapping: Wrapping): Wrapping {
  const active = keys.active();
  const { kek, wrapNonce, wrappedDek } = readWrapping(wrapping, keys.find);
  const dek = decrypt(kek.key, wrapNonce, dekWrapAad(kek.kid, aad), wrappedDek);
  try {
    if (kek.kid === active.kid) return wrapping;
    const nonce = randomBytes(NONCE_BYTES);
    return {
      kid: active.kid,
      dek_wrap_nonce_b64: nonce.toString('base64'),
      dek_wrapped_b64: encrypt(active.key, nonce, dekWrapAad(active.kid, aad), dek),
    };
  } finally {
    dek.fill(0);
  }
}

function readWith(keys: Keys, sealed: Value): SealedParts {
  try {
    return readSealed(sealed, keys.find);
  } catch (thrown) {
    // Without any key that is the answer, whatever the value looks like.
    keys.active();
    throw thrown;
  }
}

function withPlaintext<T>(keys: Keys, aad: string, sealed: Value, use: (plaintext: Buffer) => T): T {
  const { kek, ...parts } = readWith(keys, sealed);
  const dek = decrypt(kek.key, parts.wrapNonce, dekWrapAad(kek.kid, aad), parts.wrappedDek);
  try {
    const plaintext = decrypt(dek, parts.nonce, aad, parts.ciphertext);
    try {
      return use(plaintext);
    } finally {
      plaintext.fill(0);
    }
  } finally {
    dek.fill(0);
  }
}

/** @returns base64 of ciphertext || tag, as Python's `cryptography` lays it out */
function encrypt(key: KeyObject | Buffer, nonce: Buffer, aad: string, plaintext: Uint8Array): string {
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS);
  cipher.setAAD(Buffer.from(aad, 'utf8'));
  const ciphertext = cipher.update(plaintext);
  cipher.final();
  return Buffer.concat([ciphertext, cipher.getAuthTag()]).toString('base64');
}

/** @returns an unpooled buffer the caller fills after use */
function decrypt(key: KeyObject | Buffer, nonce: Buffer, aad: string, sealed: Buffer): Buffer {
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, nonce, OPTIONS);
  decipher.setAAD(Buffer.from(aad, 'utf8'));
  decipher.setAuthTag(sealed.subarray(end));
  const plaintext = decipher.update(sealed.subarray(0, end));
  try {
    decipher.final();
    return plaintext;
  } catch {
    plaintext.fill(0);
    throw new ColonnadeError('decrypt_failed', 'the sealed value does not open here');
  }
}

function parsePlaintext(plaintext: Buffer): Value {
  try {
    return parseValue(plaintext, OPENED_LIMITS);
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    throw new ColonnadeError(
      'decrypt_failed',
      'what was sealed is not a JSON value that can be kept exactly',
    );
  }
}
