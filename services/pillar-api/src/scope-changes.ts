import { type Call, ColonnadeError, LIMITS, type zScopeRestore } from '@colonnade/contracts';
import type { Clock, EstateStore, PillarVersion } from '@colonnade/estate-store';
import { canonicalBytes, valuesEqual } from '@colonnade/value';
import type { z } from 'zod';
import type { Kms } from './kms.ts';
import { planScope, type ScopeConflict, type ScopePlan, tickAt } from './scope-plan.ts';
import { findUnopenable } from './sealed-batch.ts';

/** `now`: the newest version, of a deleted pillar its deletion. */
export type ScopeChange = { past: PillarVersion; now: PillarVersion };

export type ScopeChanges = {
  create: readonly ScopeChange[];
  update: readonly ScopeChange[];
  remove: readonly PillarVersion[];
  unchanged: number;
  conflicts: readonly ScopeConflict[];
};

type Deps = {
  store: Pick<EstateStore, 'readScopeHistory' | 'getVersion'>;
  kms: Pick<Kms, 'check'>;
  call: Call;
};

/** Versions that are read at once. */
const READ_AT_ONCE = 20;

/**
 * What leads a scope from what it is to what it was.
 * @throws ColonnadeError `unprocessable` (the future, too much for one request) | `conflict` (forgotten) | `kms_unavailable`
 */
export async function loadScope(
  deps: Deps,
  asked: z.output<typeof zScopeRestore>,
): Promise<{ clock: Clock; at: number; changes: ScopeChanges }> {
  const { pillarenv, pids } = asked;
  const options = { pids, limit: LIMITS.scopeVersions };
  const { clock, historyFloor: floor, marks } = await deps.store.readScopeHistory(pillarenv, options);
  if (marks === undefined)
    throw tooMuch(`the history of the scope has more than ${LIMITS.scopeVersions} versions`);
  const when = typeof asked.at === 'number' ? { tick: asked.at } : { timeMs: Date.parse(asked.at) };
  const at = tickAt(when, { marks, now: clock.tick, nowMs: Date.now(), floor });
  const plan = planScope(pillarenv, at, marks);
  const count = plan.create.length + plan.update.length + plan.delete.length;
  if (count > LIMITS.batchPillars) {
    throw tooMuch(
      `${count} pillars would change, and one transaction changes at most ${LIMITS.batchPillars}`,
    );
  }
  return { clock, at, changes: await settle(deps, plan) };
}

/** With the values: what is the same after all is left out, and a secret that no longer opens is in the way. */
async function settle(deps: Deps, plan: ScopePlan): Promise<ScopeChanges> {
  const read = (marks: readonly { pid: string; tick: number }[]) => readVersions(deps.store, marks);
  const pairUp = async (marks: ScopePlan['update']): Promise<ScopeChange[]> => {
    const [past, now] = [await read(marks.map((m) => m.past)), await read(marks.map((m) => m.now))];
    return past.map((version, i) => ({ past: version, now: now[i] as PillarVersion }));
  };
  const update = await pairUp(plan.update);
  const differing = update.filter(
    ({ past, now }) => past.name !== now.name || !valuesEqual(past.value, now.value),
  );
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
    unchanged: plan.unchanged + update.length - differing.length,
    conflicts: [
      ...plan.conflicts,
      ...sealed.map(({ pid, name }) => ({ pid, name, reason: 'sealed' as const })),
    ],
  };
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

/** @throws ColonnadeError `conflict` that names what is in the way | `unprocessable` for more than a transaction may hold */
export function checkBatch({ create, update, conflicts }: ScopeChanges): void {
  const [first] = conflicts;
  if (first !== undefined) {
    const why = `${conflicts.length} pillars cannot be restored, the first is ${JSON.stringify(first.name)} (${first.reason})`;
    throw new ColonnadeError(
      'conflict',
      `${why}: see conflicts of a dry run, and leave them out by naming others in pids`,
    );
  }
  const bytes = [...create, ...update].reduce((sum, { past }) => sum + canonicalBytes(past.value).length, 0);
  if (bytes > LIMITS.batchBytes) {
    throw tooMuch(`the values have ${bytes} bytes, and one transaction takes at most ${LIMITS.batchBytes}`);
  }
}

function tooMuch(why: string): ColonnadeError {
  const how = `restore it in parts, each with up to ${LIMITS.batchPillars} of its pillars named in pids`;
  return new ColonnadeError('unprocessable', `pids: ${why}: ${how}`, { field: 'pids' });
}
