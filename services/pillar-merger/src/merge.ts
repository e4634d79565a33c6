import type { PillarRecord } from '@colonnade/estate-store';

/** One name of a merged pillar: the record that won and those it overrode, nearest first. */
export type MergedKey = { winner: PillarRecord; overrode: readonly PillarRecord[] };
export type Merged = ReadonlyMap<string, MergedKey>;

/**
 * Seed 000, merge_result.update(): scopes are applied in order, and the value applied later wins. "Nearest first"
 * means: the first of `overrode` is the one that would win if the winner did not exist, and so on.
 */
export function mergeScopes(
  scopes: readonly string[],
  pillarsOf: (scope: string) => readonly PillarRecord[],
): Merged {
  const merged = new Map<string, MergedKey>();
  for (const scope of scopes) {
    for (const record of pillarsOf(scope)) merged.set(record.name, put(merged.get(record.name), record));
  }
  return merged;
}

function put(known: MergedKey | undefined, record: PillarRecord): MergedKey {
  if (known === undefined) return { winner: record, overrode: [] };
  const below = [known.winner, ...known.overrode];
  return { winner: record, overrode: below.filter((other) => other.pid !== record.pid) };
}
