import { createSecretKey, type KeyObject } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { readPrivateFile } from '@colonnade/service-kit';
import { decodeBase64, KEY_BYTES } from './enc-format.ts';
import type { Kek, Keys } from './envelope.ts';

/** Seed 000, configuration of keys. */
const HOW_TO = `make one with: python -c "import os,base64; print(base64.b64encode(os.urandom(32)).decode())"`;

/** Where 32 bytes of a key come from: a file, or text. Named by their settings, which every fault names. */
export type KeySource = { file?: string | undefined; base64?: string | undefined };
export type KeyNames = { what: string; file: string; base64: string };

const KEK_NAMES = { what: 'KEK', file: 'PILLARS_KEK_FILE', base64: 'PILLARS_KEK_B64' };

/**
 * Loads the KEK: from a file (base64 text, or the 32 bytes themselves) or from base64 text (seed 000,
 * `pillars_kek_b64`). Neither set: undefined.
 * @throws ColonnadeError `misconfigured` for anything that is not exactly 32 bytes, or a file others may read
 */
export function loadKek({ kid, ...source }: KeySource & { kid: string }): Kek | undefined {
  const key = loadKey(source, KEK_NAMES);
  return key === undefined ? undefined : { kid, key };
}

/** As loadKek, for any key of ours. @throws ColonnadeError `misconfigured` */
export function loadKey(source: KeySource, names: KeyNames): KeyObject | undefined {
  if (source.file !== undefined && source.base64 !== undefined)
    throw misconfigured(`${names.file} and ${names.base64} are both set; set one`);
  if (source.file !== undefined) return toKey(readKeyFile(source.file, names.file), names.file, names.what);
  if (source.base64 !== undefined) return toKey(decodeBase64(source.base64), names.base64, names.what);
  return undefined;
}

/** One key that is configured, or none: without one every seal and open says so. */
export function fixedKeys(kek: Kek | undefined): Keys {
  const active = () => {
    if (kek === undefined) throw keyNotConfigured();
    return kek;
  };
  return { active, find: (kid) => (kek?.kid === kid ? kek : undefined), prepare: async () => {} };
}

/** The error of every seal and open while no KEK is configured (seed 000, PillarEncryptionKeyNotConfiguredException). */
function keyNotConfigured(): ColonnadeError {
  return new ColonnadeError(
    'key_not_configured',
    'PillarEncryptionKeyNotConfigured: the KMS has no key: set KMS_ROOT_KEY_FILE, or PILLARS_KEK_FILE',
  );
}

function readKeyFile(path: string, name: string): Buffer | undefined {
  const bytes = readPrivateFile(path, name);
  try {
    if (bytes.length !== KEY_BYTES) return decodeBase64(bytes.toString('latin1').replace(/\r?\n$/u, ''));
    // 32 characters of base64 are a key of 24 bytes; as raw bytes they would be a key of 192 bits of entropy.
    if (/^[A-Za-z0-9+/=]{32}$/u.test(bytes.toString('latin1'))) {
      throw misconfigured(
        `${name} holds 32 characters of text, not ${KEY_BYTES} bytes or their base64; ${HOW_TO}`,
      );
    }
    return Buffer.from(bytes);
  } finally {
    bytes.fill(0);
  }
}

function toKey(bytes: Buffer | undefined, from: string, what: string): KeyObject {
  if (bytes === undefined) throw misconfigured(`${from} is not standard base64 on one line; ${HOW_TO}`);
  try {
    if (bytes.length === KEY_BYTES) return createSecretKey(bytes);
    throw misconfigured(
      `${from} holds ${bytes.length} bytes, the ${what} is exactly ${KEY_BYTES}; ${HOW_TO}`,
    );
  } finally {
    bytes.fill(0);
  }
}

function misconfigured(message: string): ColonnadeError {
  return new ColonnadeError('misconfigured', message);
}
