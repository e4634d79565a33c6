import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tempDir } from '../../../test/support/temp.ts';
import type { Ignored } from '../src/run/list-hooks.ts';
import {
  type HookResult,
  type RunLedger,
  type RunOptions,
  type RunResult,
  runHooks,
} from '../src/run/run-hooks.ts';

export type HookFolder = AsyncDisposable & {
  path: string;
  /** A shell script, executable unless said otherwise. @returns its path */
  add(name: string, script: string, mode?: number): Promise<string>;
  run(changes?: Partial<RunOptions>, more?: { ledger?: RunLedger; signal?: AbortSignal }): Promise<Watched>;
};

export type Watched = RunResult & {
  lines: string[];
  slow: string[];
  headFaults: string[];
  ignored: readonly Ignored[];
};

const QUICK = { warnMs: 20_000, killMs: 40_000 };

/** A folder of hooks. */
export async function hookFolder(): Promise<HookFolder> {
  const dir = await tempDir('hooks');
  const folder = path.join(dir.path, 'hooks.d');
  await mkdir(folder);
  return {
    path: folder,
    async add(name, script, mode = 0o755) {
      const file = path.join(folder, name);
      await writeFile(file, `#!/bin/sh\n${script}\n`);
      await chmod(file, mode);
      return file;
    },
    run: (changes = {}, more = {}) => runWatched({ ...optionsFor(folder), ...changes }, more),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

function optionsFor(folder: string): RunOptions {
  return {
    folder,
    timeouts: QUICK,
    parameters: {},
    ownEnv: { PATH: process.env.PATH },
    allowedEnv: [],
    ignoredSuffixes: ['.disabled'],
    graceMs: 100,
    captureBytes: 65_536,
    unknownStops: true,
  };
}

/** A run that forgets. */
const noLedger: RunLedger = { known: () => undefined, begun() {}, started() {}, ended() {} };

async function runWatched(
  options: RunOptions,
  { ledger = noLedger, signal }: { ledger?: RunLedger; signal?: AbortSignal },
): Promise<Watched> {
  const lines: string[] = [];
  const slow: string[] = [];
  const headFaults: string[] = [];
  let ignored: readonly Ignored[] = [];
  const result = await runHooks(
    options,
    {
      onIgnored: (found) => {
        ignored = found;
      },
      onHeadFault: (hook, fault) => void headFaults.push(`${hook}: ${fault}`),
      onLine: (hook, stream, line) => void lines.push(`${hook} ${stream}: ${line}`),
      onSlow: (hook) => void slow.push(hook),
      onEnd() {},
    },
    ledger,
    signal,
  );
  return { ...result, lines, slow, headFaults, ignored };
}

/** The one result of a run with one hook. */
export function only(result: RunResult): HookResult {
  const [first] = result.results;
  if (first === undefined || result.results.length !== 1) throw new Error('not exactly one hook was run');
  return first;
}

/** Whether a process is there and no zombie. */
export async function isRunning(pid: number): Promise<boolean> {
  const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return state !== undefined && !/\) [ZX] /u.test(state);
}
