import type { EstatePlace } from '@colonnade/estate-store';
import { usageError } from '../exit-codes.ts';
import { readPrivate } from '../profile/config-file.ts';

/** Where an estate is; a password comes from a file, never from the command line. */
export type PlaceOptions = {
  url: string;
  user: string | undefined;
  passwordFile: string | undefined;
  authDatabase: string | undefined;
  caFile: string | undefined;
};

/** @throws ColonnadeError `misconfigured` naming the option */
export async function readPlace(option: string, options: PlaceOptions): Promise<EstatePlace> {
  const { url, user, passwordFile, authDatabase, caFile } = options;
  const place = await tryParse(option, url);
  if (place.kind === 'sqlite') return place;
  const password =
    passwordFile === undefined ? undefined : readPrivate(passwordFile, 'the password file')?.trimEnd();
  if (passwordFile !== undefined && password === undefined)
    throw usageError(`${passwordFile} does not exist`);
  return { ...place, user, password, authDatabase, ...(caFile === undefined ? {} : { tls: { caFile } }) };
}

async function tryParse(option: string, url: string): Promise<EstatePlace> {
  // With it come the drivers of both stores, which no other command needs.
  const { parsePlace } = await import('@colonnade/estate-store');
  try {
    return parsePlace(url);
  } catch (thrown) {
    throw usageError(`--${option} ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}
