import { Argument, Command as Commander, CommanderError, Option } from 'commander';
import { EXIT, usageError } from '../exit-codes.ts';
import type { Command, Given, OptionSpec } from './command.ts';

/** A command with what was given to it. */
export type Parsed = { command: Command; given: Given; globals: Globals };
export type Globals = { json: boolean; profile: string | undefined; url: string | undefined };

/** Options of every command. */
export const GLOBAL_OPTIONS = {
  json: { help: "print the API's JSON, numbers exact" },
  profile: { value: 'NAME', help: 'profile to use instead of the current one' },
  url: { value: 'URL', help: 'address of pillar-api instead of the profile’s' },
} satisfies Record<string, OptionSpec>;

/** What the groups are about, for the help. */
export const GROUPS: Readonly<Record<string, string>> = {
  pillar: 'values of the estate, plain and secret',
  collection: 'named groups of minions, in a tree',
  'collection rule': 'members by what their inventory says',
  minion: 'minions of a master and their collections',
  inventory: 'what minions tell of themselves, and who is pending',
  master: 'logical Salt masters',
  'master token': 'tokens of a master',
  service: 'programs outside that publish events',
  events: 'what they published',
  token: 'API tokens of people and programs',
  template: 'task templates',
  task: 'tasks and their state',
  scope: 'whole scopes of the estate',
  retention: 'how much of the history is kept',
  key: 'keys of crypto-kms',
  revocation: 'OpenID Connect tokens that are taken no more',
  store: 'the database or file of the estate',
  audit: 'the audit log on this host',
  hooks: 'executables that run for events',
  generation: 'policies compiled anew',
  tls: 'the rotation of a Kubernetes ingress’ certificate, asked over NATS',
  bus: 'the users of NATS',
  profile: 'addresses and tokens kept on this host',
};

const NAME = 'colonnade';

/**
 * Reads a command line.
 * @returns undefined when help or version was asked for and is printed
 * @throws ColonnadeError `misconfigured` with what is wrong and how to get help
 */
export async function parse(
  commands: readonly Command[],
  version: string,
  words: readonly string[],
): Promise<Parsed | undefined> {
  let parsed: Parsed | undefined;
  const program = buildProgram(commands, version, (found) => {
    parsed = found;
  });
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    if (thrown.exitCode === EXIT.ok) return undefined;
    throw usageError(thrown.message.replace(/^error: /u, ''));
  }
  return parsed;
}

/** The command line as Commander knows it. */
function buildProgram(
  commands: readonly Command[],
  version: string,
  chosen: (parsed: Parsed) => void,
): Commander {
  const program = configure(
    new Commander(NAME),
    'sees to an estate of pillars: what Salt minions get, and why',
  );
  program.version(version, '--version', 'print the version');
  for (const command of commands) {
    let parent = program;
    for (const [depth, word] of command.path.slice(0, -1).entries()) {
      const path = command.path.slice(0, depth + 1).join(' ');
      const known = parent.commands.find((one) => one.name() === word);
      parent = known ?? configure(parent.command(word), GROUPS[path] ?? '');
    }
    addCommand(parent, command, chosen);
  }
  program.addHelpText(
    'after',
    `\nBegin with: ${NAME} login --url https://…   Each command: ${NAME} COMMAND --help`,
  );
  return program;
}

function configure(command: Commander, summary: string): Commander {
  return command
    .description(summary)
    .exitOverride()
    .showSuggestionAfterError()
    .helpOption('-h, --help', 'this text')
    .helpCommand(false)
    .configureHelp({ sortSubcommands: true, showGlobalOptions: false })
    .configureOutput({ writeErr: () => {} })
    .action((_options, self: Commander) => {
      const [word] = self.args;
      const path = fullName(self);
      if (word !== undefined) {
        const known = self.commands.map((one) => one.name()).sort();
        throw usageError(`"${path}" has no command "${word}"; it has: ${known.join(', ')}`);
      }
      self.outputHelp();
      throw usageError(`"${path}" needs a command`);
    })
    .allowExcessArguments();
}

function addCommand(parent: Commander, command: Command, chosen: (parsed: Parsed) => void): void {
  const made = parent
    .command(command.path.at(-1) ?? '')
    .summary(command.summary)
    .description([command.summary, command.details].filter((text) => text !== undefined).join('\n\n'))
    .exitOverride()
    .helpOption('-h, --help', 'this text')
    .configureOutput({ writeErr: () => {} });
  for (const [name, spec] of Object.entries(command.args)) {
    const dots = spec.repeat ? '...' : '';
    made.addArgument(new Argument(spec.optional ? `[${name}${dots}]` : `<${name}${dots}>`, spec.help));
  }
  for (const [name, spec] of Object.entries(command.options)) made.addOption(asOption(name, spec));
  made.optionsGroup('Options of every command:');
  for (const [name, spec] of Object.entries<OptionSpec>(GLOBAL_OPTIONS)) made.addOption(asOption(name, spec));
  made.addHelpText('after', `\n${examplesText(command)}`);
  made.action((...all: unknown[]) => {
    const options = made.opts() as Record<string, unknown>;
    const args = Object.fromEntries(Object.keys(command.args).map((name, i) => [name, all[i]]));
    const read = (name: string) => options[asOption(name, { help: '' }).attributeName()];
    const values = Object.entries(command.options).map(([name, spec]) => {
      return [name, read(name) ?? (spec.repeat ? [] : spec.value === undefined ? false : undefined)];
    });
    chosen({
      command,
      given: { args, options: Object.fromEntries(values) } as Given,
      globals: {
        json: read('json') === true,
        profile: read('profile') as string | undefined,
        url: read('url') as string | undefined,
      },
    });
  });
}

function asOption(name: string, spec: OptionSpec): Option {
  const short = spec.short === undefined ? '' : `-${spec.short}, `;
  const option = new Option(
    `${short}--${name}${spec.value === undefined ? '' : ` <${spec.value}>`}`,
    spec.required ? `${spec.help} (required)` : spec.help,
  );
  if (spec.choices !== undefined) option.choices([...spec.choices]);
  if (spec.required) option.makeOptionMandatory();
  if (spec.repeat) {
    const allowed = spec.choices;
    option.argParser((text: string, before: readonly string[] | undefined) => {
      if (allowed !== undefined && !allowed.includes(text)) {
        throw usageError(`--${name}: "${text}" is none of ${allowed.join(', ')}`);
      }
      return [...(before ?? []), text];
    });
  }
  return option;
}

function examplesText(command: Command): string {
  const lines = command.examples.map(([line, what]) => `  # ${what}\n  ${commandLine(line)}`);
  return `Examples:\n${lines.join('\n')}`;
}

/** An example as it is typed; a line with a pipe names the command itself. */
function commandLine(line: string): string {
  return /(?:^|[ (])colonnade /u.test(line) ? line : `${NAME} ${line}`;
}

function fullName(command: Commander): string {
  const words: string[] = [];
  for (let at: Commander | null = command; at !== null; at = at.parent) words.unshift(at.name());
  return words.join(' ');
}
