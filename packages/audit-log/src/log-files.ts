import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { createGunzip } from 'node:zlib';
import { ColonnadeError } from '@colonnade/contracts';
import { namesOf } from './names.ts';

/** One file of a log with its journal; either may be missing. */
export type LogPart = { name: string; log: string | undefined; journal: string | undefined };

/**
 * All parts of a log, rotated and compressed ones included, oldest first, the one being written last.
 * @throws ColonnadeError `not_found` when there is no such folder
 */
export async function listLogParts(logPath: string): Promise<LogPart[]> {
  const names = namesOf(logPath);
  const here = (file: string) => (existsSync(file) ? file : undefined);
  const rotated = await names.list().catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'ENOENT' && thrown.code !== 'ENOTDIR') throw thrown;
    throw new ColonnadeError('not_found', `there is no folder ${names.dir}`, { cause: thrown });
  });
  const parts = rotated.map(({ stamp, log, gz, journal }) => ({
    name: path.basename(names.rotatedAt(stamp)),
    log: log ?? gz,
    journal,
  }));
  const written = { name: path.basename(logPath), log: here(logPath), journal: here(names.journal) };
  const newest = parts.at(-1);
  // Between the two renames of a rotation the journal has its new name and the log has not.
  const half = newest?.journal !== undefined && newest.log === undefined && written.journal === undefined;
  if (half && written.log !== undefined) return [...parts.slice(0, -1), { ...newest, log: written.log }];
  return [...parts, written];
}

/**
 * The parts whose log is here.
 * @throws ColonnadeError `not_found` when there is none at all
 */
export async function listReadable(logPath: string): Promise<(LogPart & { log: string })[]> {
  const parts = (await listLogParts(logPath)).flatMap((part) =>
    part.log === undefined ? [] : [{ ...part, log: part.log }],
  );
  if (parts.length > 0) return parts;
  throw new ColonnadeError('not_found', `there is no audit log ${logPath}, nor a rotated file of it`);
}

/** Whether reading failed by the file: gone between the look and the reading, or a damaged .gz. */
export function isUnreadable(thrown: unknown): boolean {
  const { code } = thrown as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'EISDIR' || code === 'not_found' || code?.startsWith('Z_') === true;
}

const LINE_END = 0x0a;

/** A line as it stands there, without its line end; the last one of a file may have none. */
export type RawLine = { bytes: Buffer; ended: boolean };

/**
 * The lines of a file, compressed or not, as bytes.
 * @param from byte to begin at; not for a compressed file
 * @throws ColonnadeError `not_found` naming the file when it is gone, or is compressed and cut or damaged
 */
export async function* readRawLines(file: string, from = 0): AsyncGenerator<RawLine> {
  const raw = createReadStream(file, { start: from });
  const gunzip = file.endsWith('.gz') ? raw.pipe(createGunzip()) : undefined;
  // A pipe does not hand errors on.
  raw.on('error', (error) => gunzip?.destroy(error));
  // Parts of a line that is not complete yet.
  let open: Buffer[] = [];
  try {
    for await (const part of (gunzip ?? raw) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = part.indexOf(LINE_END); end >= 0; end = part.indexOf(LINE_END, start)) {
        const last = part.subarray(start, end);
        yield { bytes: open.length === 0 ? last : Buffer.concat([...open, last]), ended: true };
        open = [];
        start = end + 1;
      }
      if (start < part.length) open.push(part.subarray(start));
    }
  } catch (thrown) {
    if (!isUnreadable(thrown)) throw thrown;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ColonnadeError('not_found', `${file} cannot be read to its end: ${why}`, { cause: thrown });
  }
  if (open.length > 0) yield { bytes: Buffer.concat(open), ended: false };
}

/** The lines of a file, compressed or not, as text. U+2028 ends no line here. @throws as readRawLines */
export async function* readLogLines(file: string): AsyncGenerator<string> {
  for await (const { bytes } of readRawLines(file)) yield bytes.toString('utf8');
}
