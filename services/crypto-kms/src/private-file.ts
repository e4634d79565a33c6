import { readFileSync, statSync } from 'node:fs';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * The bytes of a secret file that only its owner can read.
 * @param setting the environment variable that names it
 * @throws ColonnadeError `misconfigured`
 */
export function readPrivateFile(path: string, setting: string): Buffer {
  try {
    if ((statSync(path).mode & 0o077) === 0) return readFileSync(path);
  } catch (thrown) {
    throw new ColonnadeError('misconfigured', `${setting} names a file that cannot be read`, {
      cause: thrown,
    });
  }
  throw new ColonnadeError(
    'misconfigured',
    `${setting} is open to its group or to everyone: chmod 600 (or 400)`,
  );
}

/** As readPrivateFile, as text without its last line end. */
export function readPrivateText(path: string, setting: string): string {
  return readPrivateFile(path, setting)
    .toString('utf8')
    .replace(/\r?\n$/u, '');
}
