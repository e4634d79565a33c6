import type { Bus } from '@colonnade/bus';
import { ColonnadeError, type TouchedMinion } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import type { Events } from '../events.ts';
import { refreshFolder } from '../refresh-queue.ts';
import type { Runner } from '../runner.ts';
import type { Again, GenerationRecord, GenerationStore } from '../store/generation-store.ts';
import { type MinionName, nameOf } from '../store/minion-name.ts';
import type { Pending } from '../store/touches.ts';
import { compileMinions, findTouched } from './compile.ts';
import { createGenerationHooks, type GenerationHooks } from './generation-hooks.ts';
import { infoFiles, nodeIdsText, writeFailure, writeMinions, writeNodeIds } from './info-files.ts';
import { createMinionStep } from './minion-step.ts';
import { retryInMs } from './patience.ts';
import type { Failure } from './put-policies.ts';
import { removeGone } from './remove-gone.ts';
import { createStopwatch, STEPS, type Stopwatch } from './stopwatch.ts';

export type GenerationDeps = {
  bus: Pick<Bus, 'request'>;
  store: GenerationStore;
  runner: Pick<Runner, 'run' | 'hasHooks'>;
  events: Events;
  /** No further minion is begun after the first; hooks under way are ended by the second. */
  stop: { taking: AbortSignal; hooks: AbortSignal };
};

/**
 * One generation (seed 002): hooks, the minions the changes touch, their policies, hooks for each, the swap, hooks again.
 * A failure for one minion keeps its old policies and fails the generation at its end; the others go on.
 * @throws ColonnadeError `conflict` (another leads), `unavailable` (stopped, or a neighbour is away): what it was for stays
 *   to be done, and what it has put into force is whole
 */
export async function generate(
  pending: Pending,
  id: string,
  config: HookRunnerConfig,
  deps: GenerationDeps,
): Promise<GenerationRecord> {
  const { store, events } = deps;
  const watch = createStopwatch();
  const hooks = createGenerationHooks(deps.runner, deps.stop.hooks);
  const step = createMinionStep(pending.rewrite, config, { generation: id, store, hooks, watch });
  events.generationBegan(id, pending.touched.length);
  await step.runOwed();
  for (const event of ['policy-generation-pre-start', 'policy-generation-started'] as const) {
    const reason = await watch.time(STEPS.startHooks, () => hooks.run(event, id));
    if (reason !== undefined) {
      const outcome = { failed: [], reason };
      return await finish(id, outcome, undefined, { config, deps, hooks, watch });
    }
  }
  const minions = await watch.time(STEPS.findTouched, () => findTouched(deps.bus, pending.touched));
  doubtReturned(pending, minions, store);
  await compileMinions(timed(deps.bus, watch), minions, step.take, deps.stop.taking, pending.rewrite);
  const gone = () => removeGone(pending, minions, config, store);
  step.failed.push(...(await watch.time(STEPS.remove, gone)));
  if (deps.stop.taking.aborted) throw new ColonnadeError('unavailable', 'the runner stops');
  const failed = step.failed.map(({ minion, reason }) => ({ minion: nameOf(minion), reason }));
  const again = triedAgain(step.failed, pending.tries);
  if (again.length > 0) events.minionsWait(id, again);
  const reason = failed.length === 0 ? undefined : `${failed.length} minions keep their old policies`;
  const work = { pending, lookedAt: [...minions, ...pending.gone], again };
  return await finish(id, { failed, reason }, work, { config, deps, hooks, watch });
}

/** Who was deleted and is there again keeps its folder; the hooks of the deletion were told of it, and may have done anything with it. */
function doubtReturned(
  { gone }: Pending,
  found: readonly MinionName[],
  store: Pick<GenerationStore, 'beginSwap'>,
): void {
  const there = new Set(found.map(nameOf));
  const returned = gone.filter((one) => there.has(nameOf(one)));
  if (returned.length > 0) store.beginSwap(returned);
}

/** Each waits for itself, so that no change of another minion waits with it. */
function triedAgain(failed: readonly Failure[], triesOf: Pending['tries']): Again[] {
  const chance = Math.random();
  return failed
    .filter(({ retryable }) => retryable)
    .map(({ minion, gone = false }) => {
      const tries = (triesOf.get(nameOf(minion)) ?? 0) + 1;
      return { minion, inMs: retryInMs(tries, chance), tries, gone };
    });
}

/** What a generation was for, and what of it is left. */
type Work = { pending: Pending; lookedAt: readonly MinionName[]; again: readonly Again[] };

/** A bus on which mergers are asked: the time until they answer is that of their step. */
function timed(bus: GenerationDeps['bus'], watch: Stopwatch): GenerationDeps['bus'] {
  return { request: (...asked) => watch.time(STEPS.compile, () => bus.request(...asked)) };
}

type Ending = {
  config: HookRunnerConfig;
  deps: GenerationDeps;
  hooks: GenerationHooks;
  watch: Stopwatch;
};

/** Tells what came of it; without `work`, what it was for stays to be done. `updated` holds also what an earlier one has put into force that was broken off. */
async function finish(
  id: string,
  outcome: Pick<GenerationRecord, 'failed' | 'reason'>,
  work: Work | undefined,
  { config, deps, hooks, watch }: Ending,
): Promise<GenerationRecord> {
  const updated = deps.store.swapped();
  const record: GenerationRecord = {
    id,
    endedAt: new Date().toISOString(),
    status: outcome.reason === undefined ? 'finished' : 'failed',
    updated: updated.map(nameOf),
    ...outcome,
  };
  await watch.time(STEPS.tell, () => writeUpdated(record, updated, config.stateDir));
  await watch.time(STEPS.endHooks, () => runEndHooks(record, updated, config.stateDir, hooks));
  deps.store.end(record, work?.pending, work?.lookedAt ?? [], work?.again ?? []);
  deps.events.generationEnded(record, watch.steps());
  return record;
}

async function writeUpdated(
  record: GenerationRecord,
  updated: readonly TouchedMinion[],
  stateDir: string,
): Promise<void> {
  const files = infoFiles(stateDir);
  const servers = updated.filter(isPolicyServer).map(({ id }) => id);
  const nodes = updated.filter((minion) => !isPolicyServer(minion)).map(({ id }) => id);
  await writeNodeIds(files, nodeIdsText(record.id, servers, nodes));
  await writeMinions(files, record.id, record.updated);
  if (record.status === 'failed') await writeFailure(files, record.id, messageOf(record));
}

async function runEndHooks(
  { id, endedAt, status }: GenerationRecord,
  updated: readonly TouchedMinion[],
  stateDir: string,
  hooks: GenerationHooks,
): Promise<void> {
  const files = infoFiles(stateDir);
  const common = {
    RUDDER_END_GENERATION_DATETIME: endedAt,
    COLONNADE_NODES_PATH: files.minions,
    COLONNADE_REFRESH_DIR: refreshFolder(stateDir),
  };
  if (status === 'failed') {
    await hooks.run('policy-generation-failed', id, { ...common, RUDDER_ERROR_MESSAGE_PATH: files.failure });
    return;
  }
  await hooks.run('policy-generation-finished', id, {
    ...common,
    RUDDER_NODE_IDS_PATH: files.nodeIds,
    RUDDER_NUMBER_NODES_UPDATED: String(updated.length),
    RUDDER_ROOT_POLICY_SERVER_UPDATED: updated.some(({ roles }) => roles.includes('root')) ? '0' : '1',
  });
}

/** A master's own minion says so in its inventory. */
function isPolicyServer({ roles }: TouchedMinion): boolean {
  return roles.includes('root') || roles.includes('policy-server');
}

function messageOf({ reason, failed }: GenerationRecord): string {
  return [reason ?? '', ...failed.map((one) => `${one.minion}: ${one.reason}`)].join('\n');
}
