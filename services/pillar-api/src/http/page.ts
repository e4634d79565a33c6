import { canonicalBytes, type Value } from '@colonnade/value';

/** Rows read from the store at once: with values of the largest size a chunk still has a size one can hold. */
const CHUNK_ROWS = 50;
/** Bytes of values in one answer. Values are up to 256 KiB, so 500 of them would be 128 MiB. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** Chunks looked at for one answer, when most rows are left out. */
const CHUNKS = 100;

export type Filled<T, K> = { rows: readonly T[]; next: K | undefined };

/**
 * Fills one page chunk by chunk: until it has its rows or its bytes, or enough was looked at. A page may so be shorter
 * than asked for, and still have a next one.
 */
export async function fillPage<T, K>(
  page: { after: K | undefined; limit: number },
  read: (page: { after: K | undefined; limit: number }) => Promise<Filled<T, K>>,
  keep: (row: T) => boolean,
  keyOf: (row: T) => K,
  shown: (row: T) => Value,
): Promise<Filled<T, K>> {
  const rows: T[] = [];
  let bytes = 0;
  let { after } = page;
  for (let chunk = 0; chunk < CHUNKS; chunk += 1) {
    const found = await read({ after, limit: Math.min(page.limit, CHUNK_ROWS) });
    for (const [index, row] of found.rows.entries()) {
      if (!keep(row)) continue;
      rows.push(row);
      bytes += canonicalBytes(shown(row)).length;
      if (rows.length < page.limit && bytes < PAGE_BYTES) continue;
      const last = index === found.rows.length - 1 && found.next === undefined;
      return { rows, next: last ? undefined : keyOf(row) };
    }
    after = found.next;
    if (after === undefined) return { rows, next: undefined };
  }
  return { rows, next: after };
}
