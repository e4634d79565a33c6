import { type FileHandle, open } from 'node:fs/promises';
import {
  JOURNAL_FORMAT,
  type JournalHeader,
  type JournalRecord,
  parseHeader,
  parseRecord,
} from '@colonnade/audit-log';
import { ColonnadeError } from '@colonnade/contracts';

/** What a journal says at its end. */
export type JournalEnd = {
  header: JournalHeader;
  /** The last whole record; undefined when there is only the header. */
  last: JournalRecord | undefined;
  /** Bytes up to the end of the last whole record. */
  size: number;
};

const HEADER_MAX_BYTES = 4096;
const TAIL_BYTES = 64 * 1024;

/**
 * Reads the header and the last whole record; a torn end is passed over.
 * @returns undefined when there is no such file, or it ends within its header: then nothing in it counts
 * @throws ColonnadeError `misconfigured` for a file that is no journal
 */
export async function readJournalEnd(file: string): Promise<JournalEnd | undefined> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  await using _close = handle;
  const { size } = await handle.stat();
  const head = await readPart(handle, 0, Math.min(size, HEADER_MAX_BYTES));
  const headerEnd = head.indexOf(0x0a) + 1;
  if (headerEnd === 0) return undefined;
  const header = readHeader(file, head.toString('utf8', 0, headerEnd - 1));
  return { header, ...(await readLast(handle, headerEnd, size)) };
}

function readHeader(file: string, line: string): JournalHeader {
  try {
    return parseHeader(line);
  } catch (cause) {
    throw new ColonnadeError(
      'misconfigured',
      `${file} is no journal of an audit log in the format ${JOURNAL_FORMAT}; move it and its log away`,
      {
        cause,
      },
    );
  }
}

/** Looks from the end, in ever larger parts, for a line that is a record, and the last of its message. */
async function readLast(handle: FileHandle, from: number, size: number) {
  for (let length = TAIL_BYTES; ; length *= 4) {
    const start = Math.max(from, size - length);
    const text = (await readPart(handle, start, size - start)).toString('latin1');
    let end = text.lastIndexOf('\n');
    while (end >= 0) {
      const begin = text.lastIndexOf('\n', end - 1);
      // A line that may have begun before this part is not judged by its rest.
      if (begin < 0 && start > from) break;
      const last = parseRecord(text.slice(begin + 1, end));
      if (last !== undefined && last.kind !== 'p') return { last, size: start + end + 1 };
      end = end === 0 ? -1 : begin;
    }
    if (start === from) return { last: undefined, size: from };
  }
}

async function readPart(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}
