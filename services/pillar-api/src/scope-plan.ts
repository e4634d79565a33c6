import { ColonnadeError, type SCOPE_CONFLICTS } from '@colonnade/contracts';
import type { HistoryFloor, VersionMark } from '@colonnade/estate-store';

export type ScopeConflict = { pid: string; name: string; reason: (typeof SCOPE_CONFLICTS)[number] };

/** What leads a scope from what it is to what it was. */
export type ScopePlan = {
  /** Deleted since: `now` marks the deletion. */
  create: { past: VersionMark; now: VersionMark }[];
  update: { past: VersionMark; now: VersionMark }[];
  delete: VersionMark[];
  unchanged: number;
  conflicts: ScopeConflict[];
};

/**
 * The last tick that shows the scope as it was at a clock or a time (epoch ms).
 * @param marks every version of whatever stood in the scope
 * @throws ColonnadeError `unprocessable` for the future | `conflict` for a past that is not whole any more
 */
export function tickAt(
  at: { tick: number } | { timeMs: number },
  history: {
    marks: readonly Pick<VersionMark, 'tick' | 'updatedAtMs'>[];
    now: number;
    nowMs: number;
    floor: HistoryFloor;
  },
): number {
  const { marks, now, nowMs, floor } = history;
  const isTick = 'tick' in at;
  if (isTick ? at.tick > now : at.timeMs > nowMs) {
    throw new ColonnadeError('unprocessable', 'at: is not in the past', { field: 'at' });
  }
  if (isTick ? at.tick < floor.tick : at.timeMs < floor.atMs) {
    const since = `clock ${floor.tick}, ${new Date(floor.atMs).toISOString()}`;
    throw new ColonnadeError(
      'conflict',
      `what was there is not known whole any more: the retention keeps it since ${since}`,
    );
  }
  if (isTick) return at.tick;
  const later = marks.filter(({ updatedAtMs }) => updatedAtMs > at.timeMs).map(({ tick }) => tick);
  return later.reduce((first, tick) => Math.min(first, tick - 1), now);
}

/** Pure: from the versions' marks alone, so whether a value is another is not known yet. */
export function planScope(pillarenv: string, tick: number, marks: readonly VersionMark[]): ScopePlan {
  const plan: ScopePlan = { create: [], update: [], delete: [], unchanged: 0, conflicts: [] };
  for (const versions of Map.groupBy(marks, ({ pid }) => pid).values()) {
    planPillar(plan, pillarenv, tick, versions);
  }
  return plan;
}

/** `versions` of one pillar, oldest first. */
function planPillar(
  plan: ScopePlan,
  pillarenv: string,
  tick: number,
  versions: readonly VersionMark[],
): void {
  const [first] = versions;
  const now = versions.at(-1);
  if (first === undefined || now === undefined) return;
  const past = versions.findLast((version) => version.tick <= tick);
  const isIn = (version: VersionMark) => version.op !== 'delete' && version.pillarenv === pillarenv;
  const isElsewhere = (version: VersionMark) => version.op !== 'delete' && version.pillarenv !== pillarenv;
  const refuse = (reason: ScopeConflict['reason']) => {
    plan.conflicts.push({ pid: now.pid, name: (past ?? now).name, reason });
  };
  if (past === undefined && first.op !== 'create') {
    refuse('trimmed');
  } else if (past === undefined || !isIn(past)) {
    if (!isIn(now)) return;
    if (past !== undefined && isElsewhere(past)) refuse('moved');
    else plan.delete.push(now);
  } else if (past.tick === now.tick) {
    plan.unchanged += 1;
  } else if (isElsewhere(now)) {
    refuse('moved');
  } else if (past.purged) {
    refuse('purged');
  } else if (past.isSecret !== now.isSecret) {
    refuse('secrecy');
  } else {
    (isIn(now) ? plan.update : plan.create).push({ past, now });
  }
}
