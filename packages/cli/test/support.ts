import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify, stripVTControlCharacters } from 'node:util';
import { parseValue, toPlain } from '@colonnade/value';
import type { TestStack } from '../../../test/support/stack.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { type Ended, runInPipe, runInTerminal, type TerminalEnded } from '../../../test/support/terminal.ts';

const root = path.join(import.meta.dirname, '..', '..', '..');

/** How a command is run: `pipe` with JSON where it changes something, and both ways where it only reads. */
export const MODES = ['pipe', 'terminal'] as const;
export type Mode = (typeof MODES)[number];

/** What a step may use: names of its own mode, and what earlier steps have kept. */
export type Memory = {
  mode: Mode;
  /** A name that the other mode does not use. */
  own(name: string): string;
  /** Files of this mode. */
  dir: string;
  kept: Record<string, string>;
};

/** One run of one command. */
export type Step = {
  /** Words of the command, as in the table. */
  command: string;
  args: (memory: Memory) => readonly string[];
  /** What must stand in its output for a person. */
  shows: RegExp;
  /** It changes nothing, so a pipe tries it twice: as text and as JSON. */
  reads?: true;
  code?: number;
  stdin?: string;
  /** What a person types on a terminal. */
  types?: readonly { expect: string; send: string }[];
  env?: (memory: Memory) => Record<string, string>;
  /** Not one JSON document: lines of them, or none. */
  json?: 'lines' | 'none';
  /** Fields of the answer that later steps need, under the names they are kept by. */
  keep?: Readonly<Record<string, string>>;
  /** More to see in what a terminal shows. */
  looks?: (output: string) => void;
  after?: (memory: Memory) => Promise<void>;
};

export type Cli = AsyncDisposable & {
  dir: string;
  env: NodeJS.ProcessEnv;
  pipe(args: readonly string[], more?: { stdin?: string; env?: Record<string, string> }): Promise<Ended>;
  terminal(
    args: readonly string[],
    more?: { types?: Step['types']; env?: Record<string, string>; columns?: number },
  ): Promise<TerminalEnded>;
};

/** The command as it is shipped, one file, with a home of its own. */
export async function bundledCli(env: Record<string, string> = {}): Promise<Cli> {
  const dir = await tempDir('cli');
  const bundle = path.join(dir.path, 'colonnade.cjs');
  await promisify(execFile)(process.execPath, [path.join(root, 'scripts', 'bundle-cli.ts'), bundle]);
  const own = {
    ...{ PATH: process.env.PATH ?? '', HOME: dir.path, XDG_CONFIG_HOME: path.join(dir.path, 'config') },
    ...{ TERM: 'xterm', LANG: 'C.UTF-8' },
    ...env,
  };
  const argv = (args: readonly string[]): [string, ...string[]] => [process.execPath, bundle, ...args];
  return {
    dir: dir.path,
    env: own,
    pipe: (args, { stdin, env: more } = {}) =>
      runInPipe(argv(args), {
        env: { ...own, ...more },
        cwd: dir.path,
        ...(stdin === undefined ? {} : { stdin }),
      }),
    terminal: (args, { types, env: more, columns } = {}) =>
      runInTerminal(argv(args), {
        env: { ...own, ...more },
        cwd: dir.path,
        ...(types === undefined ? {} : { steps: types }),
        ...(columns === undefined ? {} : { columns }),
      }),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

/** Address, token and bus of a stack, as environment variables give them. */
export function environmentOf({ stack }: TestStack): Record<string, string> {
  return {
    COLONNADE_URL: stack.api.url,
    COLONNADE_TOKEN_FILE: path.join(stack.dir, 'secrets', 'admin-token'),
    COLONNADE_NATS_URL: stack.nats.url,
    COLONNADE_NATS_NKEY_FILE: stack.secrets.busNkeyFiles.operator,
    COLONNADE_AUDIT_LOG: stack.auditLog,
  };
}

async function createMemory(cli: Cli, mode: Mode, kept: Record<string, string> = {}): Promise<Memory> {
  const dir = path.join(cli.dir, mode);
  await mkdir(dir);
  return { mode, dir, kept: { ...kept }, own: (name) => `${mode}-${name}` };
}

/**
 * Tests of all steps, in a pipe and on a terminal; each mode has a memory of its own.
 * @param more what a mode begins with, and why a step is skipped
 */
export function testSteps(
  cli: () => Cli,
  steps: readonly Step[],
  more: { kept?: (mode: Mode) => Record<string, string>; skip?: (step: Step) => string | false } = {},
): void {
  for (const mode of MODES) {
    describe(`in a ${mode}`, () => {
      let memory: Memory;
      before(async () => {
        memory = await createMemory(cli(), mode, more.kept?.(mode));
      });
      for (const step of steps) {
        test(step.command, { skip: more.skip?.(step) ?? false }, () => runStep(cli(), step, memory));
      }
    });
  }
}

/** Runs a step in its mode, and holds it to what every command promises. */
async function runStep(cli: Cli, step: Step, memory: Memory): Promise<void> {
  const args = [...step.command.split(' '), ...step.args(memory)];
  const env = step.env?.(memory) ?? {};
  const code = step.code ?? 0;
  if (memory.mode === 'terminal') {
    const raw = await cli.terminal(args, { ...(step.types ? { types: step.types } : {}), env });
    const ended = { ...raw, output: stripVTControlCharacters(raw.output) };
    assert.equal(ended.code, code, ended.output);
    assert.equal(ended.missed, 0, `not asked: ${ended.output}`);
    assert.match(ended.output, step.shows);
    step.looks?.(ended.output);
    keep(step, memory, (field) => new RegExp(`^${field} +(\\S+)`, 'mu').exec(ended.output)?.[1]);
  } else {
    const more = { env, ...(step.stdin === undefined ? {} : { stdin: step.stdin }) };
    if (step.reads) {
      const ended = await cli.pipe(args, more);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stdout + ended.stderr, step.shows);
      assert.doesNotMatch(
        ended.stdout + ended.stderr,
        /[\u001b\u009b]/u,
        'colours or cursor moves in a pipe',
      );
    }
    if (step.json !== 'none') {
      const ended = await cli.pipe([...args, '--json'], more);
      assert.equal(ended.code, code, ended.stderr);
      const lines = ended.stdout.trimEnd().split('\n');
      if (step.json !== 'lines') assert.equal(lines.length, 1, ended.stdout);
      const documents = lines.map((line) => toPlain(parseValue(line)) as Record<string, unknown>);
      keep(step, memory, (field) => documents[0]?.[field]);
    } else if (!step.reads) {
      const ended = await cli.pipe(args, more);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stdout + ended.stderr, step.shows);
    }
  }
  await step.after?.(memory);
}

/** A private file for a command to read. */
export async function privateFile(dir: string, name: string, content: string): Promise<string> {
  const file = path.join(dir, name);
  await writeFile(file, content, { mode: 0o600 });
  return file;
}

function keep(step: Step, memory: Memory, read: (field: string) => unknown): void {
  for (const [name, field] of Object.entries(step.keep ?? {})) memory.kept[name] = String(read(field));
}
