import { ColonnadeError, LIMITS } from '@colonnade/contracts';

const DEFAULT_PAGE_ROWS = 100;

const PREFIX = 'c1:';

/** An opaque cursor; clients hand it back and read nothing into it. */
export function writeCursor(after: string | undefined): string | null {
  return after === undefined ? null : Buffer.from(PREFIX + after).toString('base64url');
}

/** @throws ColonnadeError `unprocessable` for what is no cursor of ours */
export function readCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const text = Buffer.from(cursor, 'base64url').toString('utf8');
  if (text.startsWith(PREFIX) && writeCursor(text.slice(PREFIX.length)) === cursor)
    return text.slice(PREFIX.length);
  throw new ColonnadeError('unprocessable', 'cursor: not one that this API gave out', { field: 'cursor' });
}

export function pageOptions(asked: { limit?: string | number | undefined; cursor?: string | undefined }): {
  after: string | undefined;
  limit: number;
} {
  return { after: readCursor(asked.cursor), limit: Number(asked.limit ?? DEFAULT_PAGE_ROWS) };
}

/** Cuts a page out of a list that is read whole; rows are sorted by their key, code unit by code unit. */
export function cutPage<T>(
  all: readonly T[],
  page: { after: string | undefined; limit: number },
  keyOf: (row: T) => string,
): { rows: readonly T[]; next: string | undefined } {
  const sorted = all
    .filter((row) => page.after === undefined || keyOf(row) > page.after)
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const rows = sorted.slice(0, Math.min(page.limit, LIMITS.pageRows));
  const last = rows.at(-1);
  return { rows, next: sorted.length > rows.length && last !== undefined ? keyOf(last) : undefined };
}
