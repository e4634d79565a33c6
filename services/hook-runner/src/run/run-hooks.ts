import { type ColonnadeError, type HookStatus, toColonnadeError } from '@colonnade/contracts';
import { buildEnvironment } from './environment.ts';
import { type Hook, type Ignored, listHooks } from './list-hooks.ts';
import { type HookEnd, runHook } from './run-hook.ts';
import type { Timeouts } from './timeouts.ts';

export type HookResult = { hook: string } & HookEnd;

/** What a run of an event's hooks came to. `warning`: all ran, and one of them had something to say. */
export type RunResult = {
  status: 'ok' | 'warning' | 'error';
  results: readonly HookResult[];
  /** Hooks that were not run, because one before them stopped the run. */
  notRun: readonly string[];
  /** Why it is an error without a hook's doing. */
  fault: ColonnadeError | undefined;
};

/** What is known of an earlier try of the same run, and where this one is written down. */
export type RunLedger = {
  /** The result of a hook that has ended; `begun` of one whose end nobody saw. */
  known(hook: string): HookResult | 'begun' | undefined;
  begun(hook: string): void;
  /** Its process, which leads a group of its own. */
  started(hook: string, pid: number): void;
  ended(result: HookResult): void;
};

export type RunWatch = {
  onIgnored(ignored: readonly Ignored[]): void;
  onHeadFault(hook: string, fault: string): void;
  onLine(hook: string, stream: 'stdout' | 'stderr', line: string): void;
  onSlow(hook: string, warnMs: number): void;
  onEnd(result: HookResult): void;
};

export type RunOptions = {
  folder: string;
  /** For hooks that state none themselves. */
  timeouts: Timeouts;
  parameters: Readonly<Record<string, string>>;
  /** The runner's own environment, of which hooks get a little. */
  ownEnv: Readonly<Record<string, string | undefined>>;
  allowedEnv: readonly string[];
  ignoredSuffixes: readonly string[];
  graceMs: number;
  captureBytes: number;
  /** Whether a hook whose end nobody saw stops those after it. */
  unknownStops: boolean;
};

/**
 * Runs the hooks of one event, one after the other, until one of them stops the run (seed 002). Hooks that have ended
 * in an earlier try of the run are not run again; one that had begun is `unknown`, and not run again either.
 * Never throws: a folder or a parameter that cannot be used is an error of the run.
 */
export async function runHooks(
  options: RunOptions,
  watch: RunWatch,
  ledger: RunLedger,
  signal?: AbortSignal,
): Promise<RunResult> {
  const results: HookResult[] = [];
  try {
    const { hooks, ignored } = await listHooks(options.folder, options.ignoredSuffixes);
    watch.onIgnored(ignored);
    if (hooks.length === 0) return { status: 'ok', results, notRun: [], fault: undefined };
    const env = buildEnvironment(options.parameters, options.ownEnv, options.allowedEnv);
    const stoppedAt = (index: number): RunResult => {
      const notRun = hooks.slice(index).map(({ name }) => name);
      return { status: 'error', results, notRun, fault: undefined };
    };
    for (const [index, hook] of hooks.entries()) {
      if (signal?.aborted) return stoppedAt(index);
      const result = await settle(hook, env, options, watch, ledger, signal);
      results.push(result);
      if (stops(result.status, options.unknownStops)) return stoppedAt(index + 1);
    }
    const clean = results.every(({ status }) => status === 'ok');
    return { status: clean ? 'ok' : 'warning', results, notRun: [], fault: undefined };
  } catch (thrown) {
    return { status: 'error', results, notRun: [], fault: toColonnadeError(thrown) };
  }
}

function stops(status: HookStatus, unknownStops: boolean): boolean {
  return status === 'error' || status === 'killed' || (status === 'unknown' && unknownStops);
}

async function settle(
  hook: Hook,
  env: Readonly<Record<string, string>>,
  options: RunOptions,
  watch: RunWatch,
  ledger: RunLedger,
  signal: AbortSignal | undefined,
): Promise<HookResult> {
  const { name } = hook;
  const known = ledger.known(name);
  if (known !== undefined && known !== 'begun') return known;
  const end = known === 'begun' ? nobodySaw() : await run(hook, env, options, watch, ledger, signal);
  const result = { hook: name, ...end };
  ledger.ended(result);
  watch.onEnd(result);
  return result;
}

async function run(
  hook: Hook,
  env: Readonly<Record<string, string>>,
  options: RunOptions,
  watch: RunWatch,
  ledger: RunLedger,
  signal: AbortSignal | undefined,
): Promise<HookEnd> {
  const { name, file, stated, fault } = hook;
  if (fault !== undefined) return notStarted('error', fault);
  for (const one of stated.faults) watch.onHeadFault(name, one);
  const timeouts = {
    warnMs: stated.warnMs ?? options.timeouts.warnMs,
    killMs: stated.killMs ?? options.timeouts.killMs,
  };
  const { folder, graceMs, captureBytes } = options;
  ledger.begun(name);
  return runHook(
    { file, folder, env, timeouts, graceMs, captureBytes },
    {
      onStart: (pid) => ledger.started(name, pid),
      onLine: (stream, line) => watch.onLine(name, stream, line),
      onSlow: (warnMs) => watch.onSlow(name, warnMs),
    },
    signal,
  );
}

function nobodySaw(): HookEnd {
  return notStarted('unknown', 'the runner ended while it ran; it was not run again');
}

function notStarted(status: HookStatus, reason: string): HookEnd {
  const nothing = { code: undefined, signal: undefined, durationMs: 0, slow: false };
  return { status, reason, ...nothing, stdout: '', stderr: '', droppedBytes: 0 };
}
