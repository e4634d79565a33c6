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
