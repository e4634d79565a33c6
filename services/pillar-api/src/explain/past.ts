import { ColonnadeError, LIMITS, type zScopeRestore } from '@colonnade/contracts';
import type { Clock, EstateStore, HistoryFloor, VersionMark } from '@colonnade/estate-store';
import type { z } from 'zod';
import { tickAt } from '../scope-plan.ts';

/** Scopes as they were at one clock. */
export type Past = {
  /** The last tick that shows them. */
  tick: number;
  /** What stood in a scope. @throws ColonnadeError as openPast */
  scope(pillarenv: string): Promise<readonly VersionMark[]>;
};

type Known = { clock: Clock; floor: HistoryFloor; marks: readonly VersionMark[] };

/**
 * Scopes as they were, all at the same clock. A pillar that was purged is in no past.
 * @param pillarenvs a time is the last clock at which nothing of these was changed later
 * @throws ColonnadeError `unprocessable` (the future, too many versions) | `conflict` (the retention has removed what was
 *   there; names the oldest clock) | `unavailable`
 */
export async function openPast(
  store: Pick<EstateStore, 'readScopeHistory'>,
  at: z.output<typeof zScopeRestore>['at'],
  pillarenvs: readonly string[],
): Promise<Past> {
  const read = createReader(store);
  const nowMs = Date.now();
  const known: Known[] = [];
  for (const pillarenv of pillarenvs) known.push(await read(pillarenv));
  const now = Math.min(...known.map(({ clock }) => clock.tick));
  const marks = known.flatMap((one) => one.marks);
  const when = typeof at === 'number' ? { tick: at } : { timeMs: Date.parse(at) };
  const tick = tickAt(when, { marks, now, nowMs, floor: lastOf(known.map(({ floor }) => floor)) });
  return {
    tick,
    async scope(pillarenv) {
      const found = await read(pillarenv);
      tickAt({ tick }, { marks: [], now: found.clock.tick, nowMs, floor: found.floor });
      return standingAt(tick, pillarenv, found.marks);
    },
  };
}

/** Each scope is read once: what was does not change. */
function createReader(store: Pick<EstateStore, 'readScopeHistory'>) {
  const held = new Map<string, Known>();
  let room: number = LIMITS.scopeVersions;
  return async (pillarenv: string): Promise<Known> => {
    const before = held.get(pillarenv);
    if (before !== undefined) return before;
    const found = await store.readScopeHistory(pillarenv, { pids: undefined, limit: room });
    const { clock, historyFloor, marks } = found;
    if (marks === undefined) throw tooManyVersions();
    const [first] = held.values();
    if (first !== undefined && first.clock.incarnation !== clock.incarnation) {
      throw new ColonnadeError('unavailable', 'the estate was restored meanwhile: try again');
    }
    room -= marks.length;
    const known = { clock, marks, floor: lastOf([historyFloor, ...trimmedOf(marks)]) };
    held.set(pillarenv, known);
    return known;
  };
}

/** Of pillars whose first versions the retention has removed: since when they are known. */
function trimmedOf(marks: readonly VersionMark[]): HistoryFloor[] {
  const firsts = [...Map.groupBy(marks, ({ pid }) => pid).values()].map(([first]) => first as VersionMark);
  const trimmed = firsts.filter(({ op }) => op !== 'create');
  return trimmed.map(({ tick, updatedAtMs }) => ({ tick, atMs: updatedAtMs }));
}

function lastOf(floors: readonly HistoryFloor[]): HistoryFloor {
  const later = (a: HistoryFloor, b: HistoryFloor) => (b.tick > a.tick ? b : a);
  return floors.reduce(later, { tick: 0, atMs: 0 });
}

function standingAt(tick: number, pillarenv: string, marks: readonly VersionMark[]): VersionMark[] {
  return [...Map.groupBy(marks, ({ pid }) => pid).values()].flatMap((versions) => {
    const then = versions.findLast((version) => version.tick <= tick);
    return then === undefined || then.op === 'delete' || then.pillarenv !== pillarenv ? [] : [then];
  });
}

function tooManyVersions(): ColonnadeError {
  const what = `the history of what this minion may have has more than ${LIMITS.scopeVersions} versions`;
  return new ColonnadeError('unprocessable', `at: ${what}: ask for some of its environments with pillarenv`, {
    field: 'at',
  });
}
