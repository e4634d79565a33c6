/**
 * Milliseconds to wait before the next try: doubled each time, with up to a quarter taken off at random so that many
 * that failed together do not come back together.
 * @param tries how often it has failed in a row, from 1
 */
export function backoffMs(
  tries: number,
  {
    firstMs = 500,
    maxMs = 60_000,
    random = Math.random,
  }: { firstMs?: number; maxMs?: number; random?: () => number } = {},
): number {
  const full = Math.min(firstMs * 2 ** Math.min(tries - 1, 30), maxMs);
  return Math.round(full * (1 - random() / 4));
}
