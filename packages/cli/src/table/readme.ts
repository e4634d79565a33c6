import { EXIT, EXIT_MEANING } from '../exit-codes.ts';
import { ENVIRONMENT } from '../profile/settings.ts';
import type { ArgumentSpec, Command } from './command.ts';

/** The parts of the README that are made from the tables, by the names of their marks. */
function readmeParts(commands: readonly Command[]): Readonly<Record<string, string>> {
  const exits = Object.entries(EXIT_MEANING).map(([name, meaning]) => {
    return `| ${EXIT[name as keyof typeof EXIT]} | ${meaning} |`;
  });
  const variables = Object.entries(ENVIRONMENT).map(([name, help]) => `| \`${name}\` | ${help} |`);
  return {
    commands: table(['command', 'what it does'], commands.map(row)),
    'exit-codes': table(['code', 'meaning'], exits),
    environment: table(['variable', 'meaning'], variables),
  };
}

/** A README with its marked parts made anew. */
export function renderReadme(text: string, commands: readonly Command[]): string {
  return Object.entries(readmeParts(commands)).reduce((done, [name, part]) => {
    const marked = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`, 'u');
    return done.replace(marked, (_, start: string, end: string) => `${start}${part}\n${end}`);
  }, text);
}

function table(titles: readonly string[], rows: readonly string[]): string {
  return [`| ${titles.join(' | ')} |`, `|${' --- |'.repeat(titles.length)}`, ...rows].join('\n');
}

function row(command: Command): string {
  const args = Object.entries(command.args).map(([name, spec]) => argumentText(name, spec));
  return `| \`${[...command.path, ...args].join(' ')}\` | ${command.summary} |`;
}

function argumentText(name: string, { optional, repeat }: ArgumentSpec): string {
  const text = `${name.toUpperCase()}${repeat ? '…' : ''}`;
  return optional ? `[${text}]` : text;
}
