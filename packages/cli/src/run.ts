import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, fromPlain, isValue, type Value } from '@colonnade/value';
import { adviceFor } from './advice.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { createSession } from './session.ts';
import { completeWords } from './table/completion.ts';
import { type Parsed, parse } from './table/program.ts';
import { escapeText } from './terminal/escape.ts';
import { Interrupted, watchInterrupts } from './terminal/interrupt.ts';
import { watchBrokenPipe } from './terminal/output.ts';

/** Runs one command line. @returns the exit code */
export async function run(
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  version: string,
): Promise<number> {
  watchBrokenPipe();
  if (words[0] === '__complete') return completeWords(COMMANDS, words.slice(1), env);
  const signal = watchInterrupts();
  let parsed: Parsed | undefined;
  try {
    parsed = await parse(COMMANDS, version, words);
    if (parsed === undefined) return EXIT.ok;
    const session = createSession(env, signal, parsed.globals);
    const code: unknown = await parsed.command.run(session, parsed.given);
    return typeof code === 'number' ? code : EXIT.ok;
  } catch (thrown) {
    if (signal.aborted || thrown instanceof Interrupted) return EXIT.interrupted;
    const json = parsed?.globals.json ?? words.includes('--json');
    process.stderr.write(
      json ? errorJson(thrown) : errorText(thrown, parsed?.command.path ?? knownWords(words)),
    );
    return exitCodeOf(thrown);
  }
}

/** As many of the first words as name a command or a group. */
function knownWords(words: readonly string[]): readonly string[] {
  const end = words.findIndex((_, i) => {
    return !COMMANDS.some(({ path }) => path.slice(0, i + 1).join(' ') === words.slice(0, i + 1).join(' '));
  });
  return end < 0 ? words : words.slice(0, end);
}

/** What was wrong, where, and what to do; nothing of it is trusted to be harmless to a terminal. */
function errorText(thrown: unknown, path: readonly string[]): string {
  if (!(thrown instanceof ColonnadeError)) {
    const stack = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    return `${escapeText(`colonnade: a fault in the command itself: ${stack}`)}\n`;
  }
  const problem = problemOf(thrown);
  const rows = [
    `colonnade: ${thrown.message}`,
    thrown.field === undefined ? undefined : `  where: ${thrown.field}${positionOf(problem)}`,
    problem === undefined ? undefined : `  code: ${thrown.code}, request ${String(problem.instance ?? '')}`,
    `  to do: ${adviceFor(thrown.code, path)}`,
  ];
  return escapeText(`${rows.filter((row) => row !== undefined).join('\n')}\n`);
}

/** The API's own problem document, else one of the same kind. */
function errorJson(thrown: unknown): string {
  const problem = thrown instanceof ColonnadeError ? problemOf(thrown) : undefined;
  if (problem !== undefined) return `${canonicalText(problem)}\n`;
  const code = thrown instanceof ColonnadeError ? thrown.code : 'internal';
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return `${canonicalText(fromPlain({ code, detail }))}\n`;
}

function problemOf({ cause }: ColonnadeError): Record<string, Value> | undefined {
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return undefined;
  return isValue(cause) ? (cause as Record<string, Value>) : undefined;
}

function positionOf(problem: Record<string, Value> | undefined): string {
  const position = problem?.position as Record<string, Value> | undefined;
  return position === undefined ? '' : `, line ${position.line}, column ${position.column}`;
}
