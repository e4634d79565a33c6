import { readFile } from 'node:fs/promises';
import { compilePolicy, loadPolicy } from '@colonnade/audit/policy';
import { type EventFilter, filterBy } from '@colonnade/audit-log';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * What the webhook's own policy lets through, as audit-sink applies it.
 * @param file undefined: everything
 * @param note told of what is suspicious in the file and accepted all the same
 * @throws ColonnadeError `misconfigured`: the file cannot be read, or is refused
 */
export async function readFilter(
  file: string | undefined,
  note: (text: string) => void,
): Promise<EventFilter | undefined> {
  if (file === undefined) return undefined;
  try {
    const { policy, warnings } = loadPolicy(await readFile(file), { strict: false });
    for (const warning of warnings) note(`audit policy ${file}: ${warning}`);
    return filterBy(compilePolicy(policy));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ColonnadeError('misconfigured', `audit policy ${file}: ${why}`, { cause });
  }
}
