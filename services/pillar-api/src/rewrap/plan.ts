import { ColonnadeError, type kmsListKeys, PILLARS_KEY } from '@colonnade/contracts';
import type { RewrapProgress } from '@colonnade/estate-store';
import type { z } from 'zod';

export type Key = z.output<typeof kmsListKeys.response>['keys'][number];

/** Whether values are stored under it. */
export function sealsValues({ name }: Pick<Key, 'name'>): boolean {
  return name === PILLARS_KEY;
}

/** @throws ColonnadeError `not_found` */
export function findKey(keys: readonly Key[], name: string): Key {
  const key = keys.find((one) => one.name === name);
  if (key !== undefined) return key;
  throw new ColonnadeError('not_found', 'there is no such key: look at the list of keys');
}

/** The version that seals. */
export function activeKid({ versions }: Key): string | undefined {
  return versions.find(({ state }) => state === 'active')?.kid;
}

/** Versions that still open and seal no more, and under which something is stored. */
export function kidsToLeave(key: Key, use: ReadonlyMap<string, number>): readonly string[] {
  return key.versions
    .filter(
      ({ state, version, kid }) =>
        state === 'retired' && version >= key.min_version && (use.get(kid) ?? 0) > 0,
    )
    .map(({ kid }) => kid);
}

/** How many values stand under those. */
export function countLeft(key: Key, use: ReadonlyMap<string, number>): number {
  return kidsToLeave(key, use).reduce((sum, kid) => sum + (use.get(kid) ?? 0), 0);
}

/** Versions that open nothing any more. */
export function barredKids(
  key: Pick<Key, 'versions' | 'min_version'>,
  minVersion = key.min_version,
): readonly string[] {
  return key.versions.filter(({ version }) => version < minVersion).map(({ kid }) => kid);
}

/**
 * Whether a run is to be begun without being asked for: not again for what the last one could not rewrap.
 * @param left values under older versions now
 */
export function isDue(last: RewrapProgress | undefined, kid: string, left: number): boolean {
  if (left === 0) return false;
  return last === undefined || last.kid !== kid || last.left !== left;
}
