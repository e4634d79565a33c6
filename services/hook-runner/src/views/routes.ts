import { randomUUID } from 'node:crypto';
import { type Route, route } from '@colonnade/bus';
import {
  hooksGeneration,
  hooksGenerations,
  hooksHistory,
  hooksList,
  hooksPolicyDiff,
  hooksTry,
} from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import type { Runner } from '../runner.ts';
import type { RunStore } from '../store/run-store.ts';
import { diffPolicies } from './diff-policies.ts';
import { viewGenerationDetail, viewGenerations, viewRuns } from './history.ts';
import { listHookFolders } from './list-folders.ts';
import { tryHooks } from './try-hooks.ts';

/** What people see of hooks and generations, and hooks they run by hand. */
export function viewRoutes(
  config: HookRunnerConfig,
  deps: { store: RunStore; runner: Runner; env: Readonly<Record<string, string | undefined>> },
  signal: AbortSignal,
): readonly Route[] {
  const { store, runner, env } = deps;
  return [
    route(hooksList, async ({ event }) => ({ events: await listHookFolders(config, event) })),
    route(hooksTry, (request) => tryHooks(request, config, { runner, env, nextId: randomUUID }, signal)),
    route(hooksHistory, async (request) => viewRuns(request, store)),
    route(hooksGenerations, async (request) => viewGenerations(request, store.generations)),
    route(hooksGeneration, async (request) => viewGenerationDetail(request, store.generations)),
    route(hooksPolicyDiff, ({ master, minion_id }) => diffPolicies(config.stateDir, master, minion_id)),
  ];
}
