/** Does a piece of work for each. */
export type ForEach = <T>(items: readonly T[], work: (item: T) => Promise<void>) => Promise<void>;

/**
 * Of all its calls together at most so many pieces of work are under way, in the order they came. All that a call began has ended
 * when it ends.
 * @throws what the first of its pieces to fail threw; no further one of that call is begun then
 */
export function createForEach(atOnce: number): ForEach {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  const inTurn = async (work: () => Promise<void>) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    await work();
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (items, work) => {
    const faults: unknown[] = [];
    const attempt = async (item: (typeof items)[number]) => {
      if (faults.length > 0) return;
      try {
        await work(item);
      } catch (thrown) {
        faults.push(thrown);
      }
    };
    await Promise.all(items.map((item) => inTurn(() => attempt(item))));
    if (faults.length > 0) throw faults[0];
  };
}

/** Does a piece of work for each, at most so many at once; see `createForEach`. */
export function forEachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  return createForEach(atOnce)(items, work);
}
