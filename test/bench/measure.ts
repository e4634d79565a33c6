/** A figure over the repeats of one run. */
export type Spread = { min: number; median: number; max: number; runs: number };

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median =
    sorted.length % 2 === 1
      ? (sorted[middle] as number)
      : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
  return { min: sorted[0] as number, median, max: sorted.at(-1) as number, runs: sorted.length };
}

/**
 * Runs each trial once per round, in turns, so that whatever else the machine does meets all of them alike. One round
 * before the first is not counted: nothing is warm in it.
 */
export async function interleave<T extends string, M extends string>(
  repeats: number,
  trials: Readonly<Record<T, () => Promise<Readonly<Record<M, number>>>>>,
): Promise<Record<T, Record<M, Spread>>> {
  const names = Object.keys(trials) as T[];
  const found = new Map<T, Record<M, number>[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= repeats; round++) {
    for (const name of names) {
      const result = await trials[name]();
      if (round > 0) found.get(name)?.push(result);
    }
  }
  const spreads = (results: Record<M, number>[]) => {
    const metrics = Object.keys(results[0] ?? {}) as M[];
    return Object.fromEntries(metrics.map((m) => [m, spreadOf(results.map((r) => r[m]))])) as Record<
      M,
      Spread
    >;
  };
  return Object.fromEntries(names.map((name) => [name, spreads(found.get(name) ?? [])])) as Record<
    T,
    Record<M, Spread>
  >;
}

export type Load = {
  p50Ms: number;
  p99Ms: number;
  perSecond: number;
};

/** So many callers, each one call after the other, for so long. @throws what a call throws: a figure of failures is none */
export async function drive(
  { concurrency, ms }: { concurrency: number; ms: number },
  work: (caller: number) => Promise<unknown>,
): Promise<Load> {
  const times: number[] = [];
  const startedMs = performance.now();
  const untilMs = startedMs + ms;
  await Promise.all(
    Array.from({ length: concurrency }, async (_, caller) => {
      while (performance.now() < untilMs) {
        const beganMs = performance.now();
        await work(caller);
        times.push(performance.now() - beganMs);
      }
    }),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99), perSecond: times.length / seconds };
}

/**
 * Calls each trial once after the other for so long, so that a moment in which the machine is busy meets one call of each and
 * not a whole trial. @returns calls a second, by the median of each round
 */
export async function inTurns<T extends string>(
  repeats: number,
  ms: number,
  trials: Readonly<Record<T, () => Promise<unknown>>>,
): Promise<Record<T, Spread>> {
  const names = Object.keys(trials) as T[];
  const found = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<T, number[]>;
  for (let round = 0; round <= repeats; round++) {
    const times = new Map(names.map((name) => [name, [] as number[]]));
    for (const untilMs = performance.now() + ms * names.length; performance.now() < untilMs; ) {
      for (const name of names) {
        const beganMs = performance.now();
        await trials[name]();
        times.get(name)?.push(performance.now() - beganMs);
      }
    }
    // Nothing is warm in the first one.
    if (round === 0) continue;
    for (const name of names) found[name].push(1000 / spreadOf(times.get(name) ?? []).median);
  }
  return Object.fromEntries(names.map((name) => [name, spreadOf(found[name])])) as Record<T, Spread>;
}

/** Runs something synchronous again and again for so long. @returns how often a second */
export function loop(ms: number, work: () => void, perCall = 1): number {
  const startedMs = performance.now();
  let calls = 0;
  while (performance.now() - startedMs < ms) {
    work();
    calls += 1;
  }
  return (calls * perCall) / ((performance.now() - startedMs) / 1000);
}
