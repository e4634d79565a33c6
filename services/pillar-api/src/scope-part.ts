import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { Clock, EstateStore, HistoryFloor, VersionMark } from '@colonnade/estate-store';
import { planScope, type ScopePlan, tickAt } from './scope-plan.ts';

/**
 * A whole scope is restored in parts, each one request. What goes comes first, over all pillars, since it makes room for
 * what comes back under its name; then what is changed and made again. Within both the pillars are in their pids' order.
 */

type Store = Pick<EstateStore, 'readScopePage' | 'findScopeChange'>;

/** Where a part begins. `since`: the clock of the first preview, or undefined in the first part. */
export type PartStart = {
  phase: 'delete' | 'put';
  at: number;
  since: number | undefined;
  after: string | undefined;
};

export type PartPlan = {
  clock: Clock;
  at: number;
  plan: ScopePlan;
  /** All that was looked at, for a plan of fewer of them. */
  marks: readonly VersionMark[];
  /** Undefined: nothing is left. */
  next: Pick<PartStart, 'phase' | 'after'> | undefined;
};

/** Pillars whose versions are read at once, and in one request. */
const PILLARS_AT_ONCE = 250;
const PILLARS_IN_PART = 10_000;

/**
 * The clock that `at` means, for all parts.
 * @throws ColonnadeError `unprocessable` for the future | `conflict` for what is forgotten
 */
export async function findClock(
  store: Store,
  pillarenv: string,
  asked: { at: number | string; pids: readonly string[] | undefined },
): Promise<number> {
  const { at, pids } = asked;
  const nowMs = Date.now();
  const look = { pids: [], at: 0, after: undefined, limit: 1 };
  if (typeof at === 'number') {
    const { clock, historyFloor: floor } = await store.readScopePage(pillarenv, look);
    return tickAt({ tick: at }, { marks: [], now: clock.tick, nowMs, floor });
  }
  const timeMs = Date.parse(at);
  const { clock, tick } = await store.findScopeChange(pillarenv, { pids, afterMs: timeMs });
  const { historyFloor: floor } = await store.readScopePage(pillarenv, look);
  const marks = tick === undefined ? [] : [{ tick, updatedAtMs: timeMs + 1 }];
  return tickAt({ timeMs }, { marks, now: clock.tick, nowMs, floor });
}

/**
 * Looks for up to `limit` changes from where a part begins.
 * @throws ColonnadeError `conflict` for what is forgotten
 */
export async function planPart(
  store: Store,
  pillarenv: string,
  start: PartStart,
  { pids, limit }: { pids: readonly string[] | undefined; limit: number },
): Promise<PartPlan> {
  const all = emptyPlan();
  const looked: VersionMark[] = [];
  let room = PILLARS_IN_PART;
  let clock: Clock | undefined;
  let { phase, after } = start;
  for (;;) {
    const ask = { pids, at: start.at, after, limit: PILLARS_AT_ONCE };
    const page = await store.readScopePage(pillarenv, ask);
    clock ??= page.clock;
    checkFloor(page, start.at, clock);
    room -= PILLARS_AT_ONCE;
    const taken = takeUpTo(limit - countOf(all), pillarenv, start.at, phase, page.marks);
    addTo(all, taken.plan);
    if (phase === 'put') looked.push(...taken.marks);
    after = taken.isWhole ? page.next : taken.marks.at(-1)?.pid;
    const isOver = taken.isWhole && page.next === undefined;
    if (isOver && phase === 'put') return { clock, at: start.at, plan: all, marks: looked, next: undefined };
    if (isOver) [phase, after] = ['put', undefined];
    if (countOf(all) >= limit || room <= 0)
      return { clock, at: start.at, plan: all, marks: looked, next: { phase, after } };
  }
}

function checkFloor(page: { clock: Clock; historyFloor: HistoryFloor }, at: number, first: Clock): void {
  if (page.clock.incarnation !== first.incarnation)
    throw new ColonnadeError('unavailable', 'the estate was restored meanwhile: try again');
  tickAt({ tick: at }, { marks: [], now: page.clock.tick, nowMs: 0, floor: page.historyFloor });
}

/** What one phase has to do with some pillars, at most so many changes. Conflicts are told with what goes. */
function takeUpTo(
  limit: number,
  pillarenv: string,
  at: number,
  phase: PartStart['phase'],
  marks: readonly VersionMark[],
): { plan: ScopePlan; marks: readonly VersionMark[]; isWhole: boolean } {
  const plan = emptyPlan();
  const taken: VersionMark[] = [];
  for (const versions of Map.groupBy(marks, ({ pid }) => pid).values()) {
    const one = ofPhase(phase, planScope(pillarenv, at, versions));
    if (countOf(plan) + countOf(one) > limit) return { plan, marks: taken, isWhole: false };
    addTo(plan, one);
    taken.push(...versions);
  }
  return { plan, marks: taken, isWhole: true };
}

function ofPhase(phase: PartStart['phase'], plan: ScopePlan): ScopePlan {
  return phase === 'delete'
    ? { ...emptyPlan(), delete: plan.delete, conflicts: plan.conflicts }
    : { ...plan, delete: [], conflicts: [] };
}

function emptyPlan(): ScopePlan {
  return { create: [], update: [], delete: [], unchanged: 0, conflicts: [] };
}

function countOf(plan: ScopePlan): number {
  return plan.create.length + plan.update.length + plan.delete.length + plan.conflicts.length;
}

function addTo(all: ScopePlan, plan: ScopePlan): void {
  all.create.push(...plan.create);
  all.update.push(...plan.update);
  all.delete.push(...plan.delete);
  all.conflicts.push(...plan.conflicts);
  all.unchanged += plan.unchanged;
}

/** As text for a cursor. */
export function writeStart({ phase, at, since, after }: PartStart): string {
  return [phase, at, since ?? '', after ?? ''].join(':');
}

/** @throws ColonnadeError `unprocessable` for the cursor of something else */
export function readStart(text: string): PartStart {
  const [, phase, at, since, after] = /^(delete|put):(\d{1,15}):(\d{0,15}):(.*)$/su.exec(text) ?? [];
  if (phase === undefined || after === undefined || after.length > LIMITS.idBytes)
    throw new ColonnadeError('unprocessable', 'cursor: not one of this list', { field: 'cursor' });
  return {
    phase: phase === 'put' ? 'put' : 'delete',
    at: Number(at),
    since: since === '' ? undefined : Number(since),
    after: after === '' ? undefined : after,
  };
}
