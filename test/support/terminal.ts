import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';

export type Ended = { code: number; stdout: string; stderr: string };
/** What came on the terminal, with CR LF made LF; `missed`: answers nobody asked for. */
export type TerminalEnded = { code: number; output: string; missed: number };

export type RunOptions = { env: NodeJS.ProcessEnv; cwd: string };

const LIMIT_MS = 60_000;

/** Runs a command with pipes. @param stdin what it reads; nothing unless given */
export async function runInPipe(
  argv: readonly [string, ...string[]],
  { env, cwd, stdin = '' }: RunOptions & { stdin?: string },
): Promise<Ended> {
  const [command, ...args] = argv;
  const child = spawn(command, args, { env, cwd, stdio: 'pipe', timeout: LIMIT_MS });
  // Whoever ends without reading is not a fault of the test.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? -1))),
  ]);
  return { code, stdout, stderr };
}

/** Runs a command in a pseudo-terminal. @param steps what a person types when something has come */
export async function runInTerminal(
  argv: readonly [string, ...string[]],
  options: RunOptions & { columns?: number; steps?: readonly { expect: string; send: string }[] },
): Promise<TerminalEnded> {
  const { env, cwd, columns = 200, steps = [] } = options;
  const job = { argv, env, cwd, columns, steps, timeout_s: LIMIT_MS / 2000 };
  const script = path.join(import.meta.dirname, 'pseudo_terminal.py');
  const { stdout, stderr } = await runInPipe(['python3', script], {
    env: process.env,
    cwd,
    stdin: JSON.stringify(job),
  });
  if (stderr !== '') throw new Error(`the pseudo-terminal failed: ${stderr}`);
  const { output, ...rest } = JSON.parse(stdout) as TerminalEnded;
  return { ...rest, output: output.replaceAll('\r\n', '\n') };
}
