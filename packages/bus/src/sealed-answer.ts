import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * Answers that hold a secret, encrypted to the process that asked. All processes of a service share a NATS user, so
 * whoever steals its nkey may listen to `_INBOX.<user>.>`; without the asking process's private key he hears noise.
 * X25519, HKDF-SHA-256, AES-256-GCM; a pair of processes agrees on a key once.
 */
export type AnswerKeys = {
  /** Goes with every request and answer, base64url. */
  readonly publicKey: string;
  /** @throws ColonnadeError `bad_request` when the other's key is none: asked before the work is done */
  check(peerKey: string): void;
  seal(peerKey: string, subject: string, answer: Uint8Array): Uint8Array;
  /** @throws ColonnadeError `internal` when the answer was not sealed for us */
  open(peerKey: string, subject: string, sealed: Uint8Array): Uint8Array;
};

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_PEERS = 1024;
/** What stands before the 32 bytes of an X25519 public key in its DER form (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

export function createAnswerKeys(): AnswerKeys {
  const own = generateKeyPairSync('x25519');
  const ownBytes = own.publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length);
  const shared = new Map<string, KeyObject>();
  const agree = (peerKey: string): KeyObject => {
    const known = shared.get(peerKey);
    if (known !== undefined) return known;
    const key = deriveKey(own.privateKey, ownBytes, peerKey);
    // Peers are processes of ours; the bound is for someone who makes up keys.
    if (shared.size >= MAX_PEERS) shared.clear();
    shared.set(peerKey, key);
    return key;
  };
  return {
    publicKey: ownBytes.toString('base64url'),
    check: (peerKey) => void agree(peerKey),
    seal(peerKey, subject, answer) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, agree(peerKey), nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(subject));
      return Buffer.concat([nonce, cipher.update(answer), cipher.final(), cipher.getAuthTag()]);
    },
    open(peerKey, subject, sealed) {
      try {
        const nonce = sealed.subarray(0, NONCE_BYTES);
        const decipher = createDecipheriv(ALGORITHM, agree(peerKey), nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(subject));
        decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
        const body = sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES);
        return Buffer.concat([decipher.update(body), decipher.final()]);
      } catch (cause) {
        throw new ColonnadeError('internal', 'an answer was not sealed for this process', { cause });
      }
    },
  };
}

/** The same on both sides: the public keys go into the derivation in the order of their bytes. */
function deriveKey(ownPrivate: KeyObject, ownBytes: Buffer, peerKey: string): KeyObject {
  const peerBytes = Buffer.from(peerKey, 'base64url');
  if (peerBytes.length !== 32 || peerBytes.toString('base64url') !== peerKey) {
    throw new ColonnadeError('bad_request', 'the reply key is not an X25519 public key in base64url');
  }
  const peer = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, peerBytes]), format: 'der', type: 'spki' });
  try {
    const secret = diffieHellman({ privateKey: ownPrivate, publicKey: peer });
    const salt = Buffer.concat([ownBytes, peerBytes].sort(Buffer.compare));
    return createSecretKey(Buffer.from(hkdfSync('sha256', secret, salt, 'colonnade/answer/v1', 32)));
  } catch (cause) {
    throw new ColonnadeError('bad_request', 'the reply key cannot be used', { cause });
  }
}
