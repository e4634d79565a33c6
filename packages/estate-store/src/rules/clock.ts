import { ColonnadeError } from '@colonnade/contracts';
import type { Clock } from '../port.ts';

/** The clock as a transaction sees it; changes at or before `changesFloor` are forgotten. */
export type ReadClock = Clock & { changesFloor: number };

/**
 * How far the clock jumps with a new incarnation. A backup is behind the estate it was taken from; without the jump
 * the ticks, and so the ETags, given out after the backup would be given out again for other contents.
 */
export const INCARNATION_JUMP = 2 ** 32;

/** Ticks for which a snapshot can still name what changed, unless the store is told otherwise. */
export const CHANGE_TICKS_KEPT = 10_000;

/** More changed keys than this are reported as `all`. */
export const MAX_CHANGED = 10_000;

/**
 * A clock that went back is a backup put in place without a new incarnation: its ticks will come again with other
 * contents, so nothing of it can be told from what was read before.
 * @throws ColonnadeError unavailable
 */
export function checkForward(seen: Clock | undefined, now: Clock): void {
  if (seen === undefined || seen.incarnation !== now.incarnation || seen.tick <= now.tick) return;
  throw new ColonnadeError(
    'unavailable',
    'the clock of the estate went back: a restore needs a new incarnation',
  );
}

/** What is known about the time since `since` without reading the changes; undefined: they must be read. */
export function changedWithoutReading(clock: ReadClock, since: Clock | undefined): 'all' | [] | undefined {
  if (since === undefined || since.incarnation !== clock.incarnation) return 'all';
  if (since.tick < clock.changesFloor || since.tick > clock.tick) return 'all';
  return since.tick === clock.tick ? [] : undefined;
}
