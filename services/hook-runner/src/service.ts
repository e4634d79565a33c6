import { randomUUID } from 'node:crypto';
import { openAuditor } from '@colonnade/audit';
import { type Bus, connectService, type Route, route, type ServedService } from '@colonnade/bus';
import {
  hooksConsumer,
  hooksGenerate,
  hooksRun,
  serviceHooksConsumer,
  type Touched,
} from '@colonnade/contracts';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type Running,
} from '@colonnade/service-kit';
import { createRunAnswerer } from './answer-run.ts';
import type { HookRunnerConfig } from './config.ts';
import { createEvents, type Events } from './events.ts';
import { startGenerations } from './generation/loop.ts';
import { keepTidy } from './keep-tidy.ts';
import { leadUntil } from './lead.ts';
import { checkSubject, planExternalRun, planRun } from './plan-run.ts';
import { prepareFolders } from './prepare-folders.ts';
import { tellRefreshes } from './refresh-queue.ts';
import { createRunner, type RunnerDeps } from './runner.ts';
import type { RunStore } from './store/run-store.ts';
import { type EventSource, takeEvents } from './take-events.ts';
import { takeTouches } from './take-touches.ts';
import { viewRoutes } from './views/routes.ts';

export type HookRunner = Running & { url: string };

/** Hooks under way at the end may take this long; then they are ended, and count as unknown. */
const LAST_HOOKS_MS = 3000;

/**
 * Starts the runner: of all on one state folder one leads and runs hooks, the others stand by.
 * @param deps.env what hooks are given of, the environment of the process
 * @throws ColonnadeError `misconfigured`, `bus_unavailable`
 */
export async function createHookRunner(
  config: HookRunnerConfig,
  deps: { logger: Logger; env: Readonly<Record<string, string | undefined>> },
): Promise<HookRunner> {
  const { logger, env } = deps;
  const metrics = createMetrics('hook-runner');
  const events = createEvents(logger, metrics);
  await using started = new AsyncDisposableStack();
  const bus = started.use(await connectService('hook-runner', config, logger));
  const { auditor } = started.use(openAuditor({ bus, service: 'hook-runner', config, logger, metrics }));
  const health = createHealth();
  const { opsHost: host, opsPort: port } = config;
  const ops = started.use(await createOpsServer({ host, port, health, metrics, logger }));
  await prepareFolders(config.hooksDir).then(
    (made) => made.length > 0 && events.foldersMade(made),
    (error) => events.foldersFailed(error),
  );

  const taking = new AbortController();
  const hooks = new AbortController();
  const stop = { taking: taking.signal, hooks: hooks.signal };
  const work = (store: RunStore, lost: AbortSignal) =>
    runHooksOf(config, bus, { store, auditor, events, env }, stopWith(stop, lost));
  const leading = leadUntil(config, events, work, taking.signal);
  started.defer(async () => {
    taking.abort();
    const late = setTimeout(() => hooks.abort(), LAST_HOOKS_MS);
    await leading;
    clearTimeout(late);
  });
  health.addCheck('nats', () => bus.ping());
  started.defer(() => health.setDraining());
  const running = started.move();
  return {
    url: ops.url,
    announce: { url: ops.url },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

type Stop = { taking: AbortSignal; hooks: AbortSignal };

/** Who has lost the lead ends its hooks at once: the next leader may run others. */
function stopWith({ taking, hooks }: Stop, lost: AbortSignal): Stop {
  return { taking: AbortSignal.any([taking, lost]), hooks: AbortSignal.any([hooks, lost]) };
}

/** What the leader does, until it is told to stop or has lost the lead. */
async function runHooksOf(config: HookRunnerConfig, bus: Bus, deps: RunnerDeps, stop: Stop): Promise<void> {
  const { events } = deps;
  const runner = createRunner(config, deps);
  const { generations } = deps.store;
  await using generating = startGenerations(config, {
    ...{ bus, store: generations, runner, events, stop },
  });
  const note = (touched: readonly Touched[], how: { rewrite?: boolean; gone?: boolean } = {}) => {
    generations.touch(touched, how);
    generating.wake();
  };
  using _tidy = keepTidy(config, deps.store, events);
  const routes = [
    route(hooksRun, createRunAnswerer(runner, stop.hooks, randomUUID)),
    route(hooksGenerate, async ({ all }) => {
      note([{ kind: 'all' }], { rewrite: all });
      return {};
    }),
    ...viewRoutes(config, { ...deps, runner }, stop.hooks),
  ];
  await using _served = await serve(bus, routes, events);
  const ending = new AbortController();
  const telling = tellRefreshes(config, bus, events, AbortSignal.any([stop.taking, ending.signal]));
  try {
    const take = (from: EventSource) => takeEvents(bus, from, runner, config.concurrency, events, stop);
    await Promise.all([
      takeTouches(bus, checkSubject, note, events, stop.taking),
      take({
        ...{ consumer: hooksConsumer, check: checkSubject, plan: planRun },
        noteGone: (minion) => note([{ kind: 'minion', ...minion }], { gone: true }),
      }),
      take({ consumer: serviceHooksConsumer, plan: planExternalRun }),
    ]);
  } finally {
    ending.abort();
    await telling;
  }
}

function serve(bus: Bus, routes: readonly Route[], events: Events): Promise<ServedService> {
  const description = 'Compiles policies, and runs the executables of hooks.d.';
  return bus.serve({ name: 'hook-runner', version: '0.1.0', description, onHandled: events.handled }, routes);
}
