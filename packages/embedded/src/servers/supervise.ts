import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import type { Child, Exit } from './child.ts';

/** A server process that can be taken away and brought back at the same address. */
export type RunningServer = AsyncDisposable & {
  /** Of the process that runs now; changes with a restart. */
  readonly pid: number;
  readonly logFile: string;
  /** Sends a signal; for one that ends the process, returns once it has ended. */
  kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Ends the process, should it run, and starts it anew with the same address, configuration and store. */
  restart: () => Promise<void>;
  /** Resolves when the process that runs now ends without having been asked to through this object. */
  endedByItself: () => Promise<Exit>;
};

const ending: ReadonlySet<NodeJS.Signals> = new Set(['SIGTERM', 'SIGKILL', 'SIGINT', 'SIGQUIT', 'SIGABRT']);

/** Wraps a first process and the way to start the next one. */
export function superviseServer(
  first: Child,
  logFile: string,
  startAgain: () => Promise<Child>,
): RunningServer {
  let child = first;
  const asked = new WeakSet<Child>();
  return {
    get pid() {
      return child.pid;
    },
    logFile,
    kill: async (signal) => {
      if (ending.has(signal)) asked.add(child);
      child.signal(signal);
      if (ending.has(signal)) await child.exited;
    },
    restart: async () => {
      asked.add(child);
      await child.stop();
      child = await startAgain();
    },
    endedByItself: () => {
      const watched = child;
      return new Promise((resolve) => {
        void watched.exited.then((exit) => {
          if (!asked.has(watched)) resolve(exit);
        });
      });
    },
    [Symbol.asyncDispose]: async () => {
      asked.add(child);
      await child.stop();
    },
  };
}

/**
 * Waits until a fresh process is ready, and not longer than it lives.
 * @throws ColonnadeError `unavailable` with the end of the log, after having stopped the process
 */
export async function waitReady<T>(
  name: string,
  child: Child,
  logFile: string,
  probe: () => Promise<T | undefined>,
  limitMs = 20_000,
): Promise<T> {
  const deadline = Date.now() + limitMs;
  while (!child.exit && Date.now() < deadline) {
    const result = await probe();
    if (result !== undefined) return result;
    await delay(20);
  }
  const fault = child.exit
    ? `ended with ${child.exit.signal ?? `exit code ${child.exit.code}`}`
    : `was not ready after ${limitMs / 1000} s`;
  await child.stop();
  const log = await readFile(logFile, 'utf8').catch(() => '');
  const last = log.trim().split('\n').slice(-5).join('\n');
  throw new ColonnadeError('unavailable', `${name} ${fault}; the end of ${logFile}:\n${last}`);
}
