import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * Starts the program with a watcher beside it. The watcher reads a pipe whose other end only we hold: when it
 * ends without a word, we are gone, however that came about, and the program is ended too. The program replaces the
 * shell, so its process id, exit code and signals are what we see. No core dumps: they would hold plaintext.
 */
const launchScript = `
ulimit -c 0
( (
  IFS= read -r word <&3 && exit 0
  kill -TERM $$
  tries=0
  while [ $tries -lt 50 ] && kill -0 $$; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL $$
) >/dev/null 2>&1 & )
exec "$@" 3<&-
`;

export type ChildOptions = {
  command: string;
  args: readonly string[];
  /** Both output streams are appended here; the file is made readable by its owner alone. */
  logFile: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
};

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type Child = AsyncDisposable & {
  readonly pid: number;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<Exit>;
  /** How it ended, while it runs nothing. */
  readonly exit: Exit | undefined;
  /** Sends a signal and does not wait. */
  signal: (signal: NodeJS.Signals) => void;
  /** SIGTERM, and SIGKILL for a process that is still there after `graceMs`. */
  stop: (graceMs?: number) => Promise<Exit>;
};

/**
 * Starts a process that ends with us: also when we are killed with SIGKILL. It is the leader of its own process
 * group, so a terminal's Ctrl-C reaches it only through us.
 * @throws ColonnadeError `unavailable` when it cannot be started
 */
export async function startChild({ command, args, logFile, env, cwd }: ChildOptions): Promise<Child> {
  const log = openSync(logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn('/bin/sh', ['-c', launchScript, 'sh', command, ...args], {
      stdio: ['ignore', log, log, 'pipe'],
      detached: true,
      env: env ?? process.env,
      cwd,
    });
    await once(child, 'spawn');
  } catch (cause) {
    throw new ColonnadeError('unavailable', `${command} could not be started`, { cause });
  } finally {
    closeSync(log);
  }
  return watchChild(child);
}

function watchChild(child: ChildProcess): Child {
  const lifeline = child.stdio[3] as Writable;
  let exit: Exit | undefined;
  // The watcher may be gone before we say goodbye.
  lifeline.on('error', () => {});
  const exited = once(child, 'exit').then(([code, signal]): Exit => {
    exit = { code, signal };
    lifeline.end('done\n');
    return exit;
  });
  const signal = (name: NodeJS.Signals) => void child.kill(name);
  const stop = async (graceMs = 5_000): Promise<Exit> => {
    if (exit) return exit;
    signal('SIGTERM');
    // A stopped process would sit on the SIGTERM.
    signal('SIGCONT');
    const over = new AbortController();
    const grace = delay(graceMs, undefined, { signal: over.signal }).then(
      () => signal('SIGKILL'),
      () => {},
    );
    const result = await exited;
    over.abort();
    await grace;
    return result;
  };
  return {
    pid: child.pid as number,
    exited,
    get exit() {
      return exit;
    },
    signal,
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}
