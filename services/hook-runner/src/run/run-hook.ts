import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HookStatus } from '@colonnade/contracts';
import { type Capture, createCapture } from './capture.ts';
import { judgeEnd, type ProcessEnd } from './exit-code.ts';
import { endGroup } from './process-group.ts';
import type { Timeouts } from './timeouts.ts';

export type HookCommand = {
  /** The executable, absolute. */
  file: string;
  /** Where it runs. */
  folder: string;
  /** All of its environment. */
  env: Readonly<Record<string, string>>;
  timeouts: Timeouts;
  /** Between TERM and KILL, milliseconds. */
  graceMs: number;
  /** Bytes kept of each of its two streams. */
  captureBytes: number;
};

export type HookWatch = {
  onStart(pid: number): void;
  onLine(stream: 'stdout' | 'stderr', line: string): void;
  /** The hook takes longer than its warn timeout, milliseconds. */
  onSlow(warnMs: number): void;
};

export type HookEnd = {
  status: HookStatus;
  reason: string;
  code: number | undefined;
  signal: string | undefined;
  durationMs: number;
  /** It took longer than its warn timeout. */
  slow: boolean;
  stdout: string;
  stderr: string;
  /** Of both streams, what was written beyond the limit. */
  droppedBytes: number;
};

type HookProcess = ChildProcessByStdio<null, Readable, Readable>;
type Why = { status: HookStatus; reason: string };

/** How long what a hook has written is waited for, when a process it left behind keeps its pipes open. */
const DRAIN_MS = 250;
/** After KILL only the kernel can hold a process, such as one that waits for a dead disk. */
const GIVE_UP_MS = 5000;

/**
 * Runs one hook to its end, in a process group of its own, with an empty stdin. That it could not be
 * started is an error like any other. The signal ends it, and then nobody knows how far it came.
 * @throws what `onStart` throws, after the hook was ended
 */
export async function runHook(
  command: HookCommand,
  watch: HookWatch,
  signal?: AbortSignal,
): Promise<HookEnd> {
  const startedMs = performance.now();
  const stdout = createCapture(command.captureBytes, (line) => watch.onLine('stdout', line));
  const stderr = createCapture(command.captureBytes, (line) => watch.onLine('stderr', line));
  let slow = false;
  const onSlow = () => {
    slow = true;
    watch.onSlow(command.timeouts.warnMs);
  };
  const finish = (why: Why, end?: ProcessEnd): HookEnd => {
    const [out, err] = [stdout.end(), stderr.end()];
    return {
      ...why,
      code: end?.code ?? undefined,
      signal: end?.signal ?? undefined,
      durationMs: performance.now() - startedMs,
      slow,
      stdout: out.text,
      stderr: err.text,
      droppedBytes: out.droppedBytes + err.droppedBytes,
    };
  };
  const child = await start(command, stdout, stderr);
  if (child instanceof Error) return finish({ status: 'error', reason: startFault(child) });
  await tellStart(child, command, watch);
  const { end, why } = await supervise(child, command, onSlow, signal);
  await drain(child);
  return finish(why, end);
}

/** @returns the running process, or why there is none */
async function start(command: HookCommand, stdout: Capture, stderr: Capture): Promise<HookProcess | Error> {
  try {
    const child = spawn(command.file, [], {
      cwd: command.folder,
      env: { ...command.env },
      // Its own session and process group: a kill reaches whatever it has started.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (child.pid === undefined) return (await once(child, 'error'))[0] as Error;
    child.on('error', () => {});
    child.stdout.on('data', (chunk: Buffer) => stdout.write(chunk)).on('error', () => {});
    child.stderr.on('data', (chunk: Buffer) => stderr.write(chunk)).on('error', () => {});
    return child;
  } catch (thrown) {
    return thrown as Error;
  }
}

const START_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'the file, its interpreter or its folder is not there',
  EACCES: 'the file or its interpreter may not be executed',
  ENOEXEC: 'the file is no program and names no interpreter (#!)',
  ETXTBSY: 'the file is being written',
  E2BIG: 'its environment is too large',
  ELOOP: 'its links go in a circle',
};

function startFault(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  return `could not be started: ${START_FAULTS[code] ?? 'the system refused'} (${code})`;
}

/** A hook of which nobody can note that it runs may not go on: nobody would end it when it hangs, or after a death of ours. */
async function tellStart(child: HookProcess, { graceMs }: HookCommand, watch: HookWatch): Promise<void> {
  const pid = child.pid as number;
  try {
    watch.onStart(pid);
  } catch (thrown) {
    await endGroup(pid, graceMs);
    await drain(child);
    throw thrown;
  }
}

/** Waits for the end, by itself or by ours. */
async function supervise(
  child: HookProcess,
  command: HookCommand,
  onSlow: () => void,
  signal: AbortSignal | undefined,
): Promise<{ why: Why; end: ProcessEnd | undefined }> {
  const { timeouts, graceMs } = command;
  const exited = new Promise<ProcessEnd>((resolve) => {
    child.once('exit', (code, sig) => resolve({ code, signal: sig }));
  });
  const warn = setTimeout(onSlow, timeouts.warnMs);
  let kill: NodeJS.Timeout | undefined;
  let stop = () => {};
  const ended = new Promise<Why>((resolve) => {
    const killed = `killed after ${timeouts.killMs} ms`;
    kill = setTimeout(() => resolve({ status: 'killed', reason: killed }), timeouts.killMs);
    stop = () => resolve({ status: 'unknown', reason: 'ended together with the runner' });
  });
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  const first = await Promise.race([exited, ended]);
  clearTimeout(warn);
  clearTimeout(kill);
  signal?.removeEventListener('abort', stop);
  if (!('status' in first)) return { why: judgeEnd(first), end: first };
  await endGroup(child.pid as number, graceMs);
  const end = await within(exited, GIVE_UP_MS);
  if (end !== undefined) return { why: first, end };
  return { why: { ...first, reason: `${first.reason}, and is still there` }, end };
}

/** What the hook itself wrote is in the pipes when it ends; what a process it left behind may still write is not waited for. */
async function drain(child: HookProcess): Promise<void> {
  const open = [child.stdout, child.stderr].filter((stream) => !stream.closed);
  if (open.length > 0) {
    const closed = Promise.all(open.map((stream) => new Promise((resolve) => stream.once('close', resolve))));
    if ((await within(closed, DRAIN_MS)) === undefined) {
      // A busy process may not have come to reading: one turn reads what is there.
      await nextTurn();
      for (const stream of open) stream.destroy();
    }
  }
  child.unref();
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
