import { ColonnadeError } from '@colonnade/contracts';
import type { Retention, VersionOp } from '../port-history.ts';

/** Pillars that one batch of a trimming looks at, and versions it removes at most: a transaction stays short. */
export const TRIM_PILLARS = 100;
export const TRIM_VERSIONS = 200;

/** What an adapter finds out about the versions of one pillar. */
export type FoundVersions = {
  newest: { tick: number; op: VersionOp };
  /** The newest one that the number to keep has no room for. */
  beyondKeep: number | undefined;
  /** The newest one written before the time: what is older was replaced before it. */
  beforeTime: number | undefined;
};

/**
 * Versions up to this tick are not kept; `whole`: the pillar is gone, and so is all of its history.
 * The newest version is kept, unless it is a deletion that is old enough.
 */
export function cutOf({ newest, beyondKeep, beforeTime }: FoundVersions): { upTo: number; whole: boolean } {
  if (newest.op === 'delete' && beforeTime === newest.tick) return { upTo: newest.tick, whole: true };
  const upTo = Math.max(beyondKeep ?? 0, beforeTime === undefined ? 0 : beforeTime - 1);
  return { upTo: Math.min(upTo, newest.tick - 1), whole: false };
}

/** @throws ColonnadeError bad_request */
export function checkRetention({ keep, beforeMs }: Retention): void {
  const isCount = keep === undefined || (Number.isSafeInteger(keep) && keep >= 1);
  const isTime = beforeMs === undefined || Number.isSafeInteger(beforeMs);
  if (isCount && isTime) return;
  throw new ColonnadeError('bad_request', 'a retention keeps at least one version, and ends at a whole time');
}
