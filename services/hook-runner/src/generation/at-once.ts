/** Who has it does a piece of work when fewer than so many others are at theirs, in the order they came. */
export function createLimit(atOnce: number): (work: () => Promise<void>) => Promise<void> {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

/**
 * Does a piece of work for each, at most so many at once. All that began has ended when this ends.
 * @throws what the first of them to fail threw; no further one is begun then
 */
export async function forEachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const faults: unknown[] = [];
  const worker = async () => {
    for (const item of queue) {
      try {
        await work(item);
      } catch (thrown) {
        faults.push(thrown);
      }
      if (faults.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (faults.length > 0) throw faults[0];
}
