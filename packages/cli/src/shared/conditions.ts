import type { ApiClient } from '@colonnade/api-client';
import { ColonnadeError } from '@colonnade/contracts';
import { usageError } from '../exit-codes.ts';
import type { OptionSpec } from '../table/command.ts';
import { escapeLine } from '../terminal/escape.ts';
import { ask, canAsk } from '../terminal/prompt.ts';

export const IF_MATCH_OPTION = {
  'if-match': {
    value: 'ETAG',
    help: 'only if it still is what was read with this ETag (default: as it is now)',
  },
} satisfies Record<string, OptionSpec>;

export const YES_OPTION = {
  yes: { short: 'y', help: 'do not ask; needed where there is no terminal' },
} satisfies Record<string, OptionSpec>;

/** The header of a change: the ETag given, else the one of now. @throws ColonnadeError `not_found` */
export async function ifMatch(api: ApiClient, path: string, given?: string): Promise<{ 'if-match': string }> {
  if (given !== undefined) return { 'if-match': given };
  const etag = (await api.call('GET', path)).headers.get('etag');
  if (etag === null) throw new ColonnadeError('internal', `GET ${path} came without an ETag`);
  return { 'if-match': etag };
}

/** Asks before what cannot be taken back. @throws ColonnadeError `misconfigured` when nobody can be asked, or says no */
export async function confirm(what: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!canAsk()) throw usageError(`${what}: add --yes, since there is no terminal to ask on`);
  const answer = await ask(`${escapeLine(what)}? Type "yes": `);
  if (answer.trim() !== 'yes') throw usageError('not confirmed; nothing was done');
}

/** As ifMatch, also for a pillar that is gone: then the change is for as long as it is. */
export async function ifMatchOrGone(
  api: ApiClient,
  path: string,
  given?: string,
): Promise<Record<string, string>> {
  if (given !== undefined) return { 'if-match': given };
  const etag = (await api.send('GET', path)).headers.get('etag');
  return etag === null ? { 'if-none-match': '*' } : { 'if-match': etag };
}
