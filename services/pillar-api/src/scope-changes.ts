import { type Call, ColonnadeError, LIMITS, type zScopeRestore } from '@colonnade/contracts';
import type { Clock, EstateStore, PillarVersion } from '@colonnade/estate-store';
import { canonicalBytes, valuesEqual } from '@colonnade/value';
import type { z } from 'zod';
import { readCursor, writeCursor } from './http/cursor.ts';
import type { Kms } from './kms.ts';
import { findUnopenable } from './kms-check.ts';
import { findClock, type PartPlan, type PartStart, planPart, readStart, writeStart } from './scope-part.ts';
import { planScope, type ScopeConflict, type ScopePlan } from './scope-plan.ts';

/** `now`: the newest version, of a deleted pillar its deletion. */
export type ScopeChange = { past: PillarVersion; now: PillarVersion };

export type ScopeChanges = {
  create: readonly ScopeChange[];
  update: readonly ScopeChange[];
  remove: readonly PillarVersion[];
  unchanged: number;
  conflicts: readonly ScopeConflict[];
};

type Store = Pick<EstateStore, 'readScopePage' | 'findScopeChange' | 'getVersion' | 'findPillar'>;
type Deps = { store: Store; kms: Pick<Kms, 'check'>; call: Call };

/** One part of what leads a scope from what it is to what it was. */
export type ScopePart = {
  clock: Clock;
  at: number;
  /** The clock of the first preview, when this is a later part of one. */
  since: number | undefined;
  changes: ScopeChanges;
  /** Cursor of the next part; null: nothing is left. */
  next: string | null;
};

/** Pillars of one transaction, with those that come early since they hold a name. */
const MAX_PLACED = 2 * LIMITS.batchPillars;
/** Versions that are read at once. */
const READ_AT_ONCE = 20;

/**
 * The part that the cursor names, or the first: up to `limit` changes, and of values up to `LIMITS.batchBytes`.
 * @throws ColonnadeError `unprocessable` (the future, no cursor of this list) | `conflict` (forgotten) | `kms_unavailable`
 */
export async function loadPart(deps: Deps, asked: z.output<typeof zScopeRestore>): Promise<ScopePart> {
  const { pillarenv, pids, limit = LIMITS.batchPillars } = asked;
  const cursor = readCursor(asked.cursor);
  const start: PartStart =
    cursor === undefined
      ? {
          ...{ phase: 'delete', since: undefined, after: undefined },
          at: await findClock(deps.store, pillarenv, { at: asked.at, pids }),
        }
      : readStart(cursor);
  const part = await planPart(deps.store, pillarenv, start, { pids, limit });
  const { clock, at } = part;
  const since = start.since ?? clock.tick;
  const settled = await settle(deps, part.plan);
  const { changes, last } = cutAt(LIMITS.batchBytes, pillarenv, part, settled);
  const next = last === undefined ? part.next : { phase: 'put' as const, after: last };
  const text = next && writeStart({ ...next, at, since });
  return { clock, at, since: start.since, changes, next: writeCursor(text) };
}

type Settled = ScopeChanges & { same: readonly ScopeChange[] };

/** Values up to so many bytes, and one at least. `last`: the pid up to which it goes, when it is not the whole part. */
function cutAt(
  max: number,
  pillarenv: string,
  { at, marks }: PartPlan,
  { same, ...changes }: Settled,
): { changes: ScopeChanges; last: string | undefined } {
  const inOrder = [...changes.create, ...changes.update].sort((a, b) => (a.past.pid < b.past.pid ? -1 : 1));
  let bytes = 0;
  const over = inOrder.findIndex(({ past }, i) => {
    bytes += canonicalBytes(past.value).length;
    return bytes > max && i > 0;
  });
  const last = inOrder[over - 1]?.past.pid;
  if (last === undefined) return { changes, last };
  const isKept = ({ pid }: { pid: string }) => pid <= last;
  const { unchanged } = planScope(pillarenv, at, marks.filter(isKept));
  return {
    changes: {
      ...changes,
      create: changes.create.filter(({ past }) => isKept(past)),
      update: changes.update.filter(({ past }) => isKept(past)),
      unchanged: unchanged + same.filter(({ past }) => isKept(past)).length,
      conflicts: changes.conflicts.filter((one) => one.reason !== 'sealed' || isKept(one)),
    },
    last,
  };
}

/** With the values: what is the same after all is left out, and a secret that no longer opens is in the way. */
async function settle(deps: Deps, plan: ScopePlan): Promise<Settled> {
  const read = (marks: readonly { pid: string; tick: number }[]) => readVersions(deps.store, marks);
  const pairUp = async (marks: ScopePlan['update']): Promise<ScopeChange[]> => {
    const [past, now] = [await read(marks.map((m) => m.past)), await read(marks.map((m) => m.now))];
    return past.map((version, i) => ({ past: version, now: now[i] as PillarVersion }));
  };
  const update = await pairUp(plan.update);
  const isSame = ({ past, now }: ScopeChange) => past.name === now.name && valuesEqual(past.value, now.value);
  const differing = update.filter((one) => !isSame(one));
  const same = update.filter(isSame);
  const create = await pairUp(plan.create);
  const secrets = [...create, ...differing].filter(({ past }) => past.isSecret).map(({ past }) => past);
  const bad = await findUnopenable(
    deps.kms,
    secrets.map((version) => ({ context: version, value: version.value })),
    deps.call,
  );
  const unopenable = new Set(secrets.filter((_, i) => bad.has(i)).map(({ pid }) => pid));
  const opens = ({ past }: ScopeChange) => !unopenable.has(past.pid);
  const sealed = secrets.filter(({ pid }) => unopenable.has(pid));
  return {
    create: create.filter(opens),
    update: differing.filter(opens),
    remove: await read(plan.delete),
    unchanged: plan.unchanged + same.length,
    same,
    conflicts: [
      ...plan.conflicts,
      ...sealed.map(({ pid, name }) => ({ pid, name, reason: 'sealed' as const })),
    ],
  };
}

/**
 * What is written, in an order in which each name is free: whoever holds one and had another goes first, also when he
 * would come in a later part.
 */
export async function arrange(
  deps: Deps,
  asked: { pillarenv: string; at: number },
  changes: ScopeChanges,
): Promise<ScopeChange[]> {
  const waiting = new Map([...changes.update, ...changes.create].map((one) => [one.past.pid, one]));
  const seen = new Set([...waiting.keys(), ...changes.remove.map(({ pid }) => pid)]);
  const ordered: ScopeChange[] = [];
  const place = async (change: ScopeChange): Promise<void> => {
    const { past, now } = change;
    waiting.delete(past.pid);
    if (seen.size > MAX_PLACED) throw tooEntangled();
    const moves = now.op === 'delete' || past.name !== now.name;
    const holder = moves
      ? await deps.store.findPillar(past.tgtType, past.tgtId, past.name, past.pillarenv)
      : undefined;
    if (holder !== undefined) {
      const first =
        waiting.get(holder.pid) ??
        (seen.has(holder.pid) ? undefined : await findOne(deps, asked, holder.pid));
      seen.add(holder.pid);
      if (first !== undefined) await place(first);
    }
    ordered.push(change);
    if (ordered.length > MAX_PLACED) throw tooEntangled();
  };
  for (const change of [...waiting.values()]) if (waiting.has(change.past.pid)) await place(change);
  return ordered;
}

function tooEntangled(): ColonnadeError {
  const why = `over ${MAX_PLACED} pillars have one another's names, and would be restored in one transaction`;
  return new ColonnadeError('unprocessable', `${why}: rename some of them first`);
}

/** What would become of one pillar, if it is changed at all. */
async function findOne(
  deps: Deps,
  { pillarenv, at }: { pillarenv: string; at: number },
  pid: string,
): Promise<ScopeChange | undefined> {
  const page = { pids: [pid], at, after: undefined, limit: 1 };
  const { marks } = await deps.store.readScopePage(pillarenv, page);
  const { update } = planScope(pillarenv, at, marks);
  const none = { create: [], delete: [], unchanged: 0, conflicts: [] };
  return (await settle(deps, { ...none, update })).update[0];
}

async function readVersions(
  store: Pick<EstateStore, 'getVersion'>,
  marks: readonly { pid: string; tick: number }[],
): Promise<PillarVersion[]> {
  const versions: PillarVersion[] = [];
  for (let from = 0; from < marks.length; from += READ_AT_ONCE) {
    const part = marks.slice(from, from + READ_AT_ONCE);
    for (const found of await Promise.all(part.map(({ pid, tick }) => store.getVersion(pid, tick)))) {
      if (found === undefined || found.purged)
        throw new ColonnadeError(
          'conflict',
          'the history of the scope was purged or trimmed meanwhile: try again',
        );
      versions.push(found);
    }
  }
  return versions;
}

/** @throws ColonnadeError `conflict` that names what is in the way */
export function checkFree({ conflicts }: ScopeChanges): void {
  const [first] = conflicts;
  if (first === undefined) return;
  const why = `${conflicts.length} pillars cannot be restored, the first is ${JSON.stringify(first.name)} (${first.reason})`;
  throw new ColonnadeError(
    'conflict',
    `${why}: see conflicts of a dry run, and leave them out by naming others in pids`,
  );
}
