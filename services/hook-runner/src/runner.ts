import path from 'node:path';
import type { Auditor } from '@colonnade/audit';
import { ColonnadeError } from '@colonnade/contracts';
import type { HookRunnerConfig } from './config.ts';
import type { Events } from './events.ts';
import { placeInventory } from './failed-inventories.ts';
import type { PlannedRun } from './plan-run.ts';
import { policyFolders } from './policy-folders.ts';
import { recordRun } from './record-run.ts';
import { HOOK_EVENTS, type HookEventName } from './run/hook-events.ts';
import { listHooks } from './run/list-hooks.ts';
import { type RunResult, runHooks } from './run/run-hooks.ts';
import type { RunRecord, RunStore } from './store/run-store.ts';

export type RunnerDeps = {
  store: RunStore;
  auditor: Auditor;
  events: Events;
  /** The runner's own environment. */
  env: Readonly<Record<string, string | undefined>>;
};

/**
 * Runs the hooks of one planned run, writes down what became of each, and puts on record what was not plain success.
 * @param unknownStops whether a hook whose end nobody saw stops those after it
 * @throws ColonnadeError `unavailable`: the runner stops, or the hooks cannot be listed now; `bus_unavailable`: it is not
 *   on record. The same run may then be tried again: what has ended in it does not run again.
 */
export type Run = (planned: PlannedRun, unknownStops: boolean, signal: AbortSignal) => Promise<RunResult>;

export type Runner = {
  run: Run;
  /** Whether an event has any hook now; one whose folder cannot be listed counts as having one. */
  hasHooks(event: HookEventName): Promise<boolean>;
  /** A run that has ended, however long ago. */
  ended(id: string): RunRecord | undefined;
};

export function createRunner(config: HookRunnerConfig, deps: RunnerDeps): Runner {
  const { store, events, auditor, env } = deps;
  return {
    ended: store.ended,
    hasHooks: (event) =>
      listHooks(path.join(config.hooksDir, event), config.ignoredSuffixes).then(
        ({ hooks }) => hooks.length > 0,
        () => true,
      ),
    async run(planned, unknownStops, signal) {
      const { id, event, subject } = planned;
      const inventory = await placeInventory(config, planned);
      const result = await runHooks(
        {
          folder: path.join(config.hooksDir, event),
          timeouts: HOOK_EVENTS[event].timeouts,
          parameters: { ...planned.parameters, ...inventory, ...folderParameters(config, planned) },
          ownEnv: env,
          allowedEnv: config.allowedEnv,
          ignoredSuffixes: config.ignoredSuffixes,
          graceMs: config.graceMs,
          captureBytes: config.outputBytes,
          unknownStops,
        },
        events.watchOf(event, id),
        store.ledger({ id, event, subject }),
        signal,
      );
      if (signal.aborted && result.status === 'error') {
        throw new ColonnadeError('unavailable', 'the runner stops');
      }
      if (result.fault?.retryable) throw result.fault;
      await recordRun(auditor, planned, result);
      const isEmpty = result.results.length === 0 && result.fault === undefined;
      if (!isEmpty)
        store.end({ id, event, subject }, { status: result.status, fault: result.fault?.message });
      events.ran(event, id, subject, result);
      return result;
    },
  };
}

/** Seed 002: the hooks of a deletion are told where the policies of the minion stand. */
function folderParameters(config: HookRunnerConfig, { event, minion }: PlannedRun): Record<string, string> {
  if (minion === undefined || !('RUDDER_POLICIES_DIRECTORY_ARCHIVE' in HOOK_EVENTS[event].parameters))
    return {};
  const { current, next, archive } = policyFolders(config.stateDir, minion.master, minion.id);
  return {
    RUDDER_POLICIES_DIRECTORY_CURRENT: current,
    RUDDER_POLICIES_DIRECTORY_NEW: next,
    RUDDER_POLICIES_DIRECTORY_ARCHIVE: archive,
  };
}
