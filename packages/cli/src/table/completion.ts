import { EXIT } from '../exit-codes.ts';
import { readProfiles } from '../profile/config-file.ts';
import type { Command, OptionSpec } from './command.ts';
import { GLOBAL_OPTIONS } from './program.ts';

export type Candidate = { word: string; help: string };

/** Prints what may stand in the place of the last word, one candidate a line, with its help behind a tab. */
export function completeWords(
  commands: readonly Command[],
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): number {
  const lines = candidates(commands, words, env).map(({ word, help }) => `${word}\t${help}\n`);
  process.stdout.write(lines.join(''));
  return EXIT.ok;
}

/** Pure but for the names of profiles. The last word is the one being typed; it may be empty. */
export function candidates(
  commands: readonly Command[],
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Candidate[] {
  const typed = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const command = commands.find((one) => one.path.every((word, i) => before[i] === word));
  const all = command === undefined ? subcommands(commands, before) : ofCommand(command, before, typed, env);
  const fitting = all.filter(({ word }) => word.startsWith(typed));
  return [...new Map(fitting.map((one) => [one.word, one])).values()];
}

function subcommands(commands: readonly Command[], before: readonly string[]): Candidate[] {
  return commands
    .filter((one) => one.path.length > before.length && before.every((word, i) => one.path[i] === word))
    .map((one) => ({
      word: one.path[before.length] ?? '',
      help: one.path.length === before.length + 1 ? one.summary : '',
    }));
}

function ofCommand(
  command: Command,
  before: readonly string[],
  typed: string,
  env: NodeJS.ProcessEnv,
): Candidate[] {
  const options: Record<string, OptionSpec> = { ...command.options, ...GLOBAL_OPTIONS };
  const last = /^--(.+)$/u.exec(before.at(-1) ?? '')?.[1];
  const open = last === undefined ? undefined : options[last];
  if (open?.value !== undefined) {
    if (last === 'profile') return profileNames(env);
    // Files and ids are not ours to know: the shell offers its files when we offer nothing.
    return (open.choices ?? []).map((word) => ({ word, help: '' }));
  }
  if (!typed.startsWith('-')) return [];
  return [
    ...Object.entries(options).map(([name, { help }]) => ({ word: `--${name}`, help })),
    { word: '--help', help: 'this text' },
  ];
}

function profileNames(env: NodeJS.ProcessEnv): Candidate[] {
  try {
    return Object.entries(readProfiles(env).profiles).map(([word, { url }]) => ({ word, help: url }));
  } catch {
    return [];
  }
}
