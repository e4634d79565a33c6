import { ColonnadeError } from '@colonnade/contracts';

/** Where a walk over sealed values is: pillars by pid, then versions by pid and tick. */
export type SealedCursor = { table: 'pillars' | 'versions'; pid: string; tick: number };

/** @throws ColonnadeError `bad_request` */
export function openSealedCursor(after: string | undefined): SealedCursor {
  if (after === undefined) return { table: 'pillars', pid: '', tick: -1 };
  const [table, tick, ...pid] = after.split(' ');
  if ((table !== 'pillars' && table !== 'versions') || !/^-?\d+$/u.test(tick ?? ''))
    throw new ColonnadeError('bad_request', 'not a place among sealed values');
  return { table, tick: Number(tick), pid: pid.join(' ') };
}

/** @param last undefined at the end of a table: the walk goes on with the next one, or is over */
export function writeSealedCursor(
  table: SealedCursor['table'],
  last: { pid: string; tick: number } | undefined,
): string | undefined {
  if (last !== undefined) return `${table} ${last.tick} ${last.pid}`;
  return table === 'pillars' ? 'versions -1 ' : undefined;
}
