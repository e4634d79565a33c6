import { once } from 'node:events';
import { styleText } from 'node:util';
import { canonicalText, type Value } from '@colonnade/value';
import { EXIT } from '../exit-codes.ts';
import { escapeLine } from './escape.ts';
import { type Column, createTable } from './table.ts';

/** Everything a command says; standard output is its result, standard error what a person should know beside it. */
export type Output = {
  readonly isTerminal: boolean;
  /** Text as it is: nothing is escaped here. Waits while the reader is slow. */
  write(text: string | Uint8Array): Promise<void>;
  line(text: string): Promise<void>;
  /** Exactly the API's JSON, in one line. */
  json(value: Value): Promise<void>;
  /** Names and values in two columns; both are escaped, since ids stand among the names. */
  fields(rows: readonly (readonly [name: string, text: string])[]): Promise<void>;
  /** A table that may be printed in parts. */
  table<Row>(columns: readonly Column<Row>[]): { add(rows: readonly Row[]): Promise<void> };
  /** A line on standard error; escaped. */
  note(text: string): void;
};

/** Ends quietly when the reader has gone: `colonnade … | head` is no fault. */
export function watchBrokenPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(EXIT.brokenPipe);
      throw error;
    });
  }
}

export function createOutput(): Output {
  const isTerminal = process.stdout.isTTY === true;
  const write = async (text: string | Uint8Array) => {
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  };
  return {
    isTerminal,
    write,
    line: (text) => write(`${text}\n`),
    json: (value) => write(`${canonicalText(value)}\n`),
    async fields(given) {
      const rows = given.map(([name, text]) => [escapeLine(name), text] as const);
      const width = Math.max(0, ...rows.map(([name]) => name.length));
      for (const [name, text] of rows) {
        await write(`${bold(name.padEnd(width))}  ${escapeLine(text)}\n`);
      }
    },
    table(columns) {
      const style = { width: isTerminal ? (process.stdout.columns ?? 80) : undefined, bold };
      const table = createTable(columns, style);
      return {
        async add(rows) {
          for (const text of table.render(rows)) await write(`${text}\n`);
        },
      };
    },
    note: (text) => void process.stderr.write(`${escapeLine(text)}\n`),
  };
}

/** Only where it is a terminal that wants colours (NO_COLOR, TERM=dumb). */
function bold(text: string): string {
  return styleText('bold', text, { stream: process.stdout });
}
