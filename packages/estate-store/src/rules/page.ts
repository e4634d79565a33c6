import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { Page } from '../port.ts';

/** @throws ColonnadeError bad_request */
export function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIMITS.pageRows) return;
  throw new ColonnadeError('bad_request', `a page has 1 to ${LIMITS.pageRows} rows`, { field: 'limit' });
}

/** One row more than the page was asked for: it only says that there is a next page. */
export function cutPage<T>(found: readonly T[], limit: number, cursorOf: (row: T) => string): Page<T> {
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return { rows: page, next: found.length > limit && last !== undefined ? cursorOf(last) : undefined };
}

/** Minions are ordered by master and id; the cursor is `master/id`, and neither holds a slash. */
export function minionCursor({ master, id }: { master: string; id: string }): string {
  return `${master}/${id}`;
}

/** @throws ColonnadeError bad_request */
export function readMinionCursor(after: string | undefined): { master: string; id: string } {
  const text = after ?? '/';
  const slash = text.indexOf('/');
  if (slash < 0) throw new ColonnadeError('bad_request', 'not a cursor of this list', { field: 'after' });
  return { master: text.slice(0, slash), id: text.slice(slash + 1) };
}
