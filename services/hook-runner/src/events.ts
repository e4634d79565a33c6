import type { ColonnadeError } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import type { Pause } from './generation/patience.ts';
import type { Stopwatch } from './generation/stopwatch.ts';
import type { HookEventName } from './run/hook-events.ts';
import type { HookResult, RunResult, RunWatch } from './run/run-hooks.ts';
import type { Again, GenerationRecord } from './store/generation-store.ts';

/** Everything that happens here and that an operator may want to see: one function each, its log line and its metric. */
export type Events = ReturnType<typeof createEvents>;

/** Of a long list this many stand in one line of the log, beside their number; all of them are in the history. */
const NAMED_MOST = 20;
const HOOK_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2, 5, 20, 30, 60, 120, 300];

export function createEvents(logger: Logger, metrics: Metrics) {
  return {
    ...hookEvents(logger, metrics),
    ...generationEvents(logger, metrics),
    ...serviceEvents(logger, metrics),
  };
}

function hookEvents(logger: Logger, metrics: Metrics) {
  const runs = metrics.counter('hook_runs_total', 'Runs of the hooks of an event.', ['event', 'status']);
  const hooks = metrics.counter('hooks_total', 'Hooks, by what became of them.', ['event', 'status']);
  const seconds = metrics.histogram('hook_seconds', 'Time a hook took.', ['event'], HOOK_SECONDS);
  const slow = metrics.counter('hooks_slow_total', 'Hooks over their warn timeout.', ['event']);
  const dropped = metrics.counter('hook_output_dropped_bytes_total', 'Output over the limit.', ['event']);
  return {
    /** What happens during one run. */
    watchOf(event: HookEventName, run: string): RunWatch {
      const about = (hook: string) => ({ event, hook, run });
      return {
        onIgnored(ignored) {
          for (const { name, why } of ignored) logger.debug({ ...about(name), why }, 'no hook');
        },
        onHeadFault: (hook, fault) => logger.warn({ ...about(hook), fault }, 'hook states a bad timeout'),
        onLine: (hook, stream, line) => logger.info({ ...about(hook), stream, line }, 'hook says'),
        onSlow(hook, warnMs) {
          slow.inc({ event });
          logger.warn({ ...about(hook), warnMs }, 'hook takes long');
        },
        onEnd(result) {
          hooks.inc({ event, status: result.status });
          seconds.observe({ event }, result.durationMs / 1000);
          if (result.droppedBytes > 0) dropped.inc({ event }, result.droppedBytes);
          logger[levelOf(result)]({ ...about(result.hook), ...factsOf(result) }, 'hook ended');
        },
      };
    },
    ran(event: HookEventName, run: string, subject: string, result: RunResult) {
      runs.inc({ event, status: result.status });
      if (result.results.length === 0 && result.fault === undefined) return;
      const { status, notRun, fault } = result;
      const facts = {
        event,
        run,
        subject,
        status,
        hooks: result.results.length,
        notRun,
        fault: fault?.message,
      };
      logger[status === 'ok' ? 'info' : status === 'warning' ? 'warn' : 'error'](facts, 'hooks ended');
    },
  };
}

/** Seed 002: of success a debug line, of a warning a warning, of everything else an error. */
function levelOf({ status }: HookResult): 'debug' | 'warn' | 'error' {
  if (status === 'ok') return 'debug';
  return status === 'warning' ? 'warn' : 'error';
}

function factsOf({ status, reason, durationMs, slow, droppedBytes }: HookResult) {
  return { status, reason, durationMs: Math.round(durationMs), slow, droppedBytes };
}

/** As Rudder logs them: namespaces `policy.generation` and `policy.generation.timing`. */
function generationEvents(logger: Logger, metrics: Metrics) {
  const generations = metrics.counter('generations_total', 'Generations, by how they ended.', ['status']);
  const steps = metrics.histogram('generation_step_seconds', 'Time of the steps.', ['step'], HOOK_SECONDS);
  const minions = metrics.counter('generation_minions_total', 'Minions of generations.', ['outcome']);
  const general = logger.child({ namespace: 'policy.generation' });
  const timing = logger.child({ namespace: 'policy.generation.timing' });
  return {
    generationBegan: (generation: string, touched: number) =>
      general.info({ generation, touched }, 'Start policy generation'),
    generationEnded(record: GenerationRecord, times: ReturnType<Stopwatch['steps']>) {
      const { id: generation, status, updated, failed, endedAt, reason } = record;
      generations.inc({ status });
      minions.inc({ outcome: 'updated' }, updated.length);
      minions.inc({ outcome: 'failed' }, failed.length);
      for (const [step, ms] of times.steps) {
        steps.observe({ step }, ms / 1000);
        timing.info({ generation, step, ms: Math.round(ms) }, 'Timing summary');
      }
      timing.info(
        { generation, updated: updated.length, ms: Math.round(times.totalMs) },
        'Timing summary, in all',
      );
      const some = { failed: failed.slice(0, NAMED_MOST), failedCount: failed.length };
      const facts = { generation, endedAt, updated: updated.length, ...some, reason };
      if (status === 'finished') general.info(facts, 'Successful policy update');
      else general.error(facts, 'Policy update failed');
    },
    policiesChecked: (checked: number, of: number, ms: number) =>
      general.info({ checked, of, ms: Math.round(ms) }, 'policies on disk compared with what is noted'),
    policiesUnusable: (minion: string, error: unknown) =>
      general.error({ minion, err: error }, 'folder of policies cannot be repaired'),
    policiesDiffer: (minions: readonly string[]) =>
      general.warn(
        { minions: minions.slice(0, NAMED_MOST), count: minions.length },
        'policies on disk are not those noted, and are generated anew',
      ),
    generationWaits: (generation: string, { atMostMs, failures }: Pause) =>
      general.warn(
        { generation, failures, ms: Math.round(atMostMs) },
        'Policy generation is tried again after a pause',
      ),
    minionsWait: (generation: string, again: readonly Again[]) =>
      general.info(
        { generation, minions: again.length, ms: Math.round(Math.min(...again.map(({ inMs }) => inMs))) },
        'minions are tried again after a pause',
      ),
    generationBroken(generation: string, error: unknown) {
      generations.inc({ status: 'broken' });
      general.error({ generation, err: error }, 'Policy generation broken off, and tried again');
    },
    generationsFailed: (error: unknown) =>
      general.error({ err: error }, 'Generations cannot go on; trying again'),
  };
}

function serviceEvents(logger: Logger, metrics: Metrics) {
  const leads = metrics.gauge('hook_runner_leads', '1 on the replica that runs hooks.', []);
  const taken = metrics.counter('hook_events_total', 'Events taken from the stream.', ['outcome']);
  const failures = metrics.counter('hook_failures_total', 'Events that failed and come again.', ['code']);
  const refreshes = metrics.counter('refresh_minions_total', 'Minions to be refreshed.', ['outcome']);
  const requests = metrics.counter('hook_requests_total', 'Requests on the bus.', ['endpoint', 'code']);
  return {
    leads(file: string) {
      leads.set(1);
      logger.info({ file }, 'this runner leads');
    },
    standsBy(file: string) {
      leads.set(0);
      logger.info({ file }, 'another runner leads');
    },
    leadLost(file: string) {
      leads.set(0);
      logger.error(
        { file },
        'the lead is lost: another runner has it, or its files were removed or replaced',
      );
    },
    leadFailed: (error: unknown) => logger.error({ err: error }, 'the lead cannot be taken; trying again'),
    orphanEnded: (pid: number) => logger.warn({ pid }, 'hook of an earlier runner ended'),
    foldersMade: (made: readonly string[]) => logger.info({ made }, 'folders of hooks made'),
    foldersFailed: (error: unknown) => logger.warn({ err: error }, 'folders of hooks cannot be made'),
    taken: (outcome: 'run' | 'known' | 'no hooks') => taken.inc({ outcome }),
    unreadable(seq: number, error: unknown) {
      taken.inc({ outcome: 'unreadable' });
      logger.error({ seq, err: error }, 'event cannot be read, and is left out');
    },
    failed(error: ColonnadeError, attempt: number) {
      failures.inc({ code: error.code });
      logger.error({ code: error.code, attempt, err: error }, 'event failed and comes again');
    },
    refreshTold(generation: string, masters: number, minions: number) {
      refreshes.inc({ outcome: 'told' }, minions);
      logger.info({ generation, masters, minions }, 'masters told whom to refresh');
    },
    refreshDropped(generation: string, minions: number) {
      refreshes.inc({ outcome: 'dropped' }, minions);
      logger.error({ generation, minions }, 'refresh dropped: its masters could not be told for too long');
    },
    refreshUnreadable: (generation: string, lines: number) =>
      logger.error({ generation, lines }, 'lines of a list of refreshes cannot be read, and are left out'),
    refreshFailed: (error: unknown) => logger.warn({ err: error }, 'masters cannot be told whom to refresh'),
    pruneFailed: (error: unknown) => logger.warn({ err: error }, 'history cannot be tidied'),
    handled: ({ endpoint, code }: { endpoint: string; code: string }) => requests.inc({ endpoint, code }),
  };
}
