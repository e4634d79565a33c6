import { LIMITS } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { canonicalText } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import type { OptionSpec } from '../table/command.ts';
import type { Column } from '../terminal/table.ts';
import { asList, asObject } from './view.ts';

export const LIMIT_OPTION = {
  limit: { value: 'N', help: 'at most so many rows (default: all)' },
} satisfies Record<string, OptionSpec>;

export type PageRequest = { limit: number; cursor: string | undefined };

/** Prints a list page by page, so that a long one needs no memory. */
export async function showPages(
  { out, json, signal }: Session,
  limit: string | undefined,
  columns: readonly Column<Value>[],
  read: (page: PageRequest) => Promise<Value | undefined>,
): Promise<void> {
  let left = limit === undefined ? Number.POSITIVE_INFINITY : countOf('limit', limit);
  const table = out.table(columns);
  let cursor: string | undefined;
  let printed = 0;
  if (json) await out.write('{"items":[');
  do {
    signal.throwIfAborted();
    const page = asObject(await read({ limit: Math.min(left, LIMITS.pageRows), cursor }));
    const items = asList(page.items).slice(0, left);
    if (json)
      await out.write(`${printed > 0 && items.length > 0 ? ',' : ''}${items.map(canonicalText).join(',')}`);
    else await table.add(items);
    printed += items.length;
    left -= items.length;
    cursor = typeof page.next_cursor === 'string' ? page.next_cursor : undefined;
  } while (cursor !== undefined && left > 0);
  if (json) await out.write(`],"next_cursor":${cursor === undefined ? 'null' : canonicalText(cursor)}}\n`);
  else if (cursor !== undefined) out.note(`there are more: raise --limit ${printed}`);
}

/** @throws ColonnadeError `misconfigured` */
export function countOf(option: string, text: string): number {
  if (!/^[1-9][0-9]{0,8}$/u.test(text)) throw usageError(`--${option}: "${text}" is no number from 1`);
  return Number(text);
}

/** A query string of what is given. */
export function queryOf(fields: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return text === '' ? '' : `?${text}`;
}

/** A list that the API gives for a GET. */
export function showList(
  session: Session,
  path: string,
  options: { limit: string | undefined } & Record<string, string | undefined>,
  columns: readonly Column<Value>[],
): Promise<void> {
  const { limit, ...filters } = options;
  return showPages(session, limit, columns, async (page) => {
    return (await session.api().call('GET', path + queryOf({ ...filters, ...page }))).value;
  });
}
