/** Choices that repeat with their seed. */
export type Random = {
  /** A whole number below `n`. */
  below(n: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** Up to `most` picks, each of them once. */
  some<T>(list: readonly T[], most: number): T[];
};

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  const pick = <T>(list: readonly T[]) => list[below(list.length)] as T;
  return {
    below,
    chance: (probability) => next() < probability,
    pick,
    some: (list, most) => [...new Set(Array.from({ length: below(most + 1) }, () => pick(list)))],
  };
}
