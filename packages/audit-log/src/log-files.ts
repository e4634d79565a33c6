import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import { namesOf } from './names.ts';

/** One file of a log with its journal; either may be missing. */
export type LogPart = { name: string; log: string | undefined; journal: string | undefined };

/** All parts of a log, rotated and compressed ones included, oldest first, the one being written last. */
export async function listLogParts(logPath: string): Promise<LogPart[]> {
  const names = namesOf(logPath);
  const here = (file: string) => (existsSync(file) ? file : undefined);
  const rotated = await names.list();
  return [
    ...rotated.map(({ stamp, log, gz, journal }) => ({
      name: path.basename(names.rotatedAt(stamp)),
      log: log ?? gz,
      journal,
    })),
    { name: path.basename(logPath), log: here(logPath), journal: here(names.journal) },
  ];
}

/** The lines of a file, compressed or not, from a byte on. U+2028 ends no line here. */
export async function* readLogLines(file: string, from = 0): AsyncGenerator<string> {
  const raw = createReadStream(file);
  const input = file.endsWith('.gz') ? raw.pipe(createGunzip()) : raw;
  let skip = from;
  let rest = '';
  input.setEncoding('latin1');
  for await (const text of input as AsyncIterable<string>) {
    const part = text.slice(Math.min(skip, text.length));
    skip -= Math.min(skip, text.length);
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield Buffer.from(line, 'latin1').toString('utf8');
  }
  if (rest !== '') yield Buffer.from(rest, 'latin1').toString('utf8');
}

/** The lines of a journal: header first. */
export function readJournalLines(file: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
}
