import { createSecretKey } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { readPrivateFile } from '@colonnade/service-kit';
import { decodeBase64, KEY_BYTES } from './enc-format.ts';
import type { Kek } from './envelope.ts';

/** Seed 000, configuration of keys. */
const HOW_TO = `make one with: python -c "import os,base64; print(base64.b64encode(os.urandom(32)).decode())"`;

export type KekSource = { file?: string | undefined; base64?: string | undefined; kid: string };

/**
 * Loads the KEK: from a file (base64 text, or the 32 bytes themselves) or from base64 text (seed 000,
 * `pillars_kek_b64`). Neither set: undefined, and every item is answered `key_not_configured`.
 * @throws ColonnadeError `misconfigured` for anything that is not exactly 32 bytes, or a file others may read
 */
export function loadKek(source: KekSource): Kek | undefined {
  if (source.file !== undefined && source.base64 !== undefined) {
    throw misconfigured('PILLARS_KEK_FILE and PILLARS_KEK_B64 are both set; set one');
  }
  if (source.file !== undefined) return toKek(source.kid, readKekFile(source.file), 'PILLARS_KEK_FILE');
  if (source.base64 !== undefined) return toKek(source.kid, decodeBase64(source.base64), 'PILLARS_KEK_B64');
  return undefined;
}

/** The error of every seal and open while no KEK is configured (seed 000, PillarEncryptionKeyNotConfiguredException). */
export function keyNotConfigured(): ColonnadeError {
  return new ColonnadeError(
    'key_not_configured',
    'PillarEncryptionKeyNotConfigured: the KMS has neither PILLARS_KEK_FILE nor PILLARS_KEK_B64',
  );
}

function readKekFile(path: string): Buffer | undefined {
  const bytes = readPrivateFile(path, 'PILLARS_KEK_FILE');
  try {
    if (bytes.length !== KEY_BYTES) return decodeBase64(bytes.toString('latin1').replace(/\r?\n$/u, ''));
    // 32 characters of base64 are a key of 24 bytes; as raw bytes they would be a key of 192 bits of entropy.
    if (/^[A-Za-z0-9+/=]{32}$/u.test(bytes.toString('latin1'))) {
      throw misconfigured(
        `PILLARS_KEK_FILE holds 32 characters of text, not ${KEY_BYTES} bytes or their base64; ${HOW_TO}`,
      );
    }
    return Buffer.from(bytes);
  } finally {
    bytes.fill(0);
  }
}

function toKek(kid: string, bytes: Buffer | undefined, from: string): Kek {
  if (bytes === undefined) throw misconfigured(`${from} is not standard base64 on one line; ${HOW_TO}`);
  try {
    if (bytes.length === KEY_BYTES) return { kid, key: createSecretKey(bytes) };
    throw misconfigured(`${from} holds ${bytes.length} bytes, the KEK is exactly ${KEY_BYTES}; ${HOW_TO}`);
  } finally {
    bytes.fill(0);
  }
}

function misconfigured(message: string): ColonnadeError {
  return new ColonnadeError('misconfigured', message);
}
