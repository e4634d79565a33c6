import type { FileHandle } from 'node:fs/promises';
import { rename } from 'node:fs/promises';
import path from 'node:path';
import { CHAIN_START, type FileNames, formatHeader, nextStamp } from '@colonnade/audit-log';
import { inodeOf, openForWriting, replaceFile, syncFolder } from './files.ts';
import { type JournalEnd, readJournalEnd } from './journal.ts';

/** Where the log stands: the stream's sequence, its time, and the chain's head. */
export type Place = { stream: string; seq: number; storedAtNs: bigint; head: string };

/** The log and its journal, open, cut to what is known to be whole. */
export type OpenFiles = {
  log: FileHandle;
  journal: FileHandle;
  inode: string;
  base: number;
  end: number;
  journalEnd: number;
  place: Place;
  /** Name of the journal before this one. */
  previous: string;
};

/** What was found: everything as it was left; nothing; another file or none under the log's name; a shorter one. */
export type Found = 'intact' | 'fresh' | 'moved' | 'shrunk';

/**
 * Opens the log as the last writer left it, or left it behind when it was killed: lines that no record in the journal vouches for are
 * cut off, a rotation that was under way is finished.
 * @param fresh where a log that has no journal begins
 */
export async function recover(
  logPath: string,
  names: FileNames,
  fresh: Omit<Place, 'head'>,
): Promise<{ files: OpenFiles; found: Found }> {
  await finishRotation(logPath, names);
  const journal = await readJournalEnd(names.journal);
  if (journal === undefined) {
    const newest = (await names.list()).findLast((r) => r.journal !== undefined)?.journal;
    const before = newest === undefined ? undefined : await readJournalEnd(newest);
    const place = before === undefined ? { ...fresh, head: CHAIN_START } : placeOf(before);
    const previous = newest === undefined ? '' : path.basename(newest);
    return {
      files: await begin(logPath, names, place, previous),
      found: before === undefined ? 'fresh' : 'intact',
    };
  }
  const log = await inodeOf(logPath);
  const end = journal.last?.end ?? journal.header.base;
  if (log?.inode === journal.header.inode && log.size >= end) {
    return { files: await resume(logPath, names, journal, end), found: 'intact' };
  }
  const found = log?.inode === journal.header.inode ? 'shrunk' : 'moved';
  const previous = await archiveJournal(names);
  return { files: await begin(logPath, names, placeOf(journal), previous), found };
}

/** A kill between the two renames of a rotation leaves a journal that has its new name and a log that has not. */
async function finishRotation(logPath: string, names: FileNames): Promise<void> {
  const newest = (await names.list()).at(-1);
  if (newest?.journal === undefined || newest.log !== undefined || newest.gz !== undefined) return;
  if ((await inodeOf(names.journal)) !== undefined) return;
  const [log, journal] = [await inodeOf(logPath), await readJournalEnd(newest.journal)];
  if (log === undefined || log.inode !== journal?.header.inode) return;
  {
    await using handle = await openForWriting(logPath);
    await handle.truncate(Math.min(log.size, journal.last?.end ?? journal.header.base));
    await handle.sync();
  }
  await rename(logPath, names.rotatedAt(newest.stamp));
  await syncFolder(names.dir);
}

async function resume(
  logPath: string,
  names: FileNames,
  journal: JournalEnd,
  end: number,
): Promise<OpenFiles> {
  const log = await openForWriting(logPath);
  const handle = await openForWriting(names.journal);
  await log.truncate(end);
  await handle.truncate(journal.size);
  await log.sync();
  await handle.sync();
  const { inode, base, previous } = journal.header;
  const place = placeOf(journal);
  return { log, journal: handle, inode, base, end, journalEnd: journal.size, place, previous };
}

/** Starts a journal for whatever file has the log's name now, made if need be; our lines begin at its end. */
export async function begin(
  logPath: string,
  names: FileNames,
  place: Place,
  previous: string,
): Promise<OpenFiles> {
  const log = await openForWriting(logPath);
  try {
    const { ino, dev, size } = await log.stat({ bigint: true });
    const base = await endLine(log, Number(size));
    await log.sync();
    const inode = `${dev}:${ino}`;
    const text = formatHeader({
      format: 'colonnade-audit-chain/1',
      stream: place.stream,
      seq: place.seq,
      stored_at_ns: String(place.storedAtNs),
      head: place.head,
      base,
      inode,
      previous,
    });
    await replaceFile(names.journal, text);
    const journal = await openForWriting(names.journal);
    return { log, journal, inode, base, end: base, journalEnd: Buffer.byteLength(text), place, previous };
  } catch (thrown) {
    await log.close();
    throw thrown;
  }
}

/** A foreign file that does not end in a line end must not lend its last line to our first. */
async function endLine(log: FileHandle, size: number): Promise<number> {
  if (size === 0) return 0;
  const last = Buffer.alloc(1);
  await log.read(last, 0, 1, size - 1);
  if (last[0] === 0x0a) return size;
  await log.write('\n', size);
  return size + 1;
}

/** Gives the journal the name of a rotated file; its log is elsewhere. @returns the new name, without the folder */
export async function archiveJournal(names: FileNames): Promise<string> {
  const rotated = await names.list();
  // A rotation that failed half way, on a full disk for one, has given it its new name already.
  if ((await inodeOf(names.journal)) === undefined) {
    return path.basename(rotated.findLast((r) => r.journal !== undefined)?.journal ?? '');
  }
  const archived = names.journalOf(names.rotatedAt(nextStamp(rotated, Date.now())));
  await rename(names.journal, archived);
  await syncFolder(names.dir);
  return path.basename(archived);
}

/** Where a journal ends. */
export function placeOf({ header, last }: JournalEnd): Place {
  return {
    stream: header.stream,
    seq: last?.seq ?? header.seq,
    storedAtNs: last?.storedAtNs ?? BigInt(header.stored_at_ns),
    head: last?.head ?? header.head,
  };
}
