import { readFileSync, statSync } from 'node:fs';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * The bytes of a secret file that only its owner can read.
 * @param setting the environment variable that names it
 * @throws ColonnadeError `misconfigured` naming setting, file and mode
 */
export function readPrivateFile(path: string, setting: string): Buffer {
  let mode: number;
  try {
    mode = statSync(path).mode & 0o777;
    if ((mode & 0o077) === 0) return readFileSync(path);
  } catch (cause) {
    throw new ColonnadeError('misconfigured', `${setting}: ${path} cannot be read`, { cause });
  }
  throw new ColonnadeError(
    'misconfigured',
    `${setting}: ${path} has mode 0${mode.toString(8)}; others may read it: chmod 600 (or 400)`,
  );
}

/** As readPrivateFile, as text without its last line end. */
export function readPrivateText(path: string, setting: string): string {
  return readPrivateFile(path, setting)
    .toString('utf8')
    .replace(/\r?\n$/u, '');
}
