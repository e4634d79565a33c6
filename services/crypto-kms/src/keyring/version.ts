import { int, type KEY_STATES } from '@colonnade/contracts';
import { z } from 'zod';
import { zSealedKey } from './root-key.ts';

export const zKeyName = z.string().regex(/^[a-z][a-z0-9-]{0,47}$/u, 'a key name is a–z, 0–9 and -');

/** One version of a named key, one file: nothing but its end is ever changed. Times are milliseconds since the epoch. */
export const zVersionFile = z.strictObject({
  format: z.literal('colonnade-key-version/1'),
  name: zKeyName,
  version: int({ min: 1 }),
  /** What `$enc` names it by. */
  kid: z.string().min(1).max(128),
  created_at_ms: int({ min: 0 }),
  /** From then on it seals; before, it is there only so that every replica can open what it will seal. */
  active_from_ms: int({ min: 0 }),
  /** Null once it is destroyed. */
  sealed: zSealedKey.nullable(),
  destroyed_at_ms: int({ min: 0 }).nullable(),
});
export type VersionFile = z.output<typeof zVersionFile>;

/** How one version of a key reads on record; a key's name holds no colon. */
export function versionRef(name: string, version: number): string {
  return `${name}:${version}`;
}

export type KeyState = (typeof KEY_STATES)[number];

/**
 * The state of each version of one key, by its own times and those of the others: the newest that may be used is active,
 * older ones only open. No state is stored, so no two replicas can disagree for longer than their clocks do.
 * @param ended versions that are given up
 */
export function statesOf(
  versions: readonly VersionFile[],
  nowMs: number,
  ended: { has(version: number): boolean },
): Map<number, KeyState> {
  const active = activeOf(versions, nowMs)?.version;
  return new Map(
    versions.map((one) => {
      if (one.destroyed_at_ms !== null || ended.has(one.version)) return [one.version, 'destroyed'];
      if (one.version === active) return [one.version, 'active'];
      return [one.version, one.active_from_ms > nowMs ? 'prepublished' : 'retired'];
    }),
  );
}

/** The version that seals now. */
export function activeOf(versions: readonly VersionFile[], nowMs: number): VersionFile | undefined {
  return versions
    .filter((one) => one.destroyed_at_ms === null && one.active_from_ms <= nowMs)
    .sort((a, b) => b.version - a.version)[0];
}

/**
 * When the next version is due: the active one's age. Undefined: a next one is there already.
 * @param farMs as isNextWaiting
 */
export function ageOfActiveMs(
  versions: readonly VersionFile[],
  nowMs: number,
  farMs: number,
): number | undefined {
  const active = activeOf(versions, nowMs);
  if (active === undefined || isNextWaiting(versions, nowMs, farMs)) return undefined;
  return nowMs - active.active_from_ms;
}

/**
 * Whether a version waits for its first use.
 * @param farMs one that lies further ahead was made by a wrong clock, and is not waited for
 */
export function isNextWaiting(versions: readonly VersionFile[], nowMs: number, farMs: number): boolean {
  const active = activeOf(versions, nowMs)?.version ?? 0;
  return versions.some((one) => one.version > active && one.active_from_ms <= nowMs + farMs);
}
