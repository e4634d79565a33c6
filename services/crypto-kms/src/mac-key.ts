import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { z } from 'zod';
import { createStateFile, readStateFile } from './state-dir.ts';

const zMacFile = z.strictObject({
  format: z.literal('colonnade-mac-key/1'),
  key_hex: z.string().regex(/^[0-9a-f]{64}$/u),
});

/** HMAC-SHA-256 of a digest under a key that never leaves this service; both as lower-case hex. */
export type Mac = (sha256Hex: string) => string;

/**
 * Loads `mac-key.json` of the state folder, and makes it at the first start. It is no derivative of the KEK: a change of
 * the KEK must not change the fingerprints of requests that may still be repeated.
 * @throws ColonnadeError `misconfigured` for a file that is broken or open to others; it is left as it is
 */
export async function loadMac(stateDir: string): Promise<Mac> {
  const file = path.join(stateDir, 'mac-key.json');
  let content = await readStateFile(file, zMacFile);
  if (content === undefined) {
    await createStateFile(file, zMacFile, {
      format: 'colonnade-mac-key/1',
      key_hex: randomBytes(32).toString('hex'),
    });
    content = await readStateFile(file, zMacFile);
  }
  if (content === undefined)
    throw new ColonnadeError('misconfigured', `${file} vanished while the service started`);
  const key = createSecretKey(content.key_hex, 'hex');
  return (sha256Hex) => createHmac('sha256', key).update(sha256Hex, 'hex').digest('hex');
}
