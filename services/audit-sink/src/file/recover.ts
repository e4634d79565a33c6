import type { FileHandle } from 'node:fs/promises';
import { rename } from 'node:fs/promises';
import path from 'node:path';
import {
  CHAIN_START,
  type FileNames,
  fitsJournal,
  formatHeader,
  JOURNAL_FORMAT,
  nextStamp,
} from '@colonnade/audit-log';
import { inodeOf, openForWriting, replaceFile, syncFolder } from './files.ts';
import { type JournalEnd, readJournalEnd } from './journal.ts';

/** Where the log stands: the stream's sequence, its time, and the chain's head. */
export type Place = { stream: string; seq: number; storedAtNs: bigint; head: string };

/** The log and its journal, open, cut to what is known to be whole. */
export type OpenFiles = {
  log: FileHandle;
  journal: FileHandle;
  inode: string;
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
  const end = journal.last?.end ?? 0;
  const fits = log === undefined ? 'else' : await fitOf(log, end, journal, { log: logPath, ...names });
  if (log !== undefined && fits === 'all') {
    return { files: await resume(logPath, names, journal, end, log.inode), found: 'intact' };
  }
  const found = fits === 'beginning' ? 'shrunk' : 'moved';
  const previous = await archiveJournal(names, found === 'shrunk' ? logPath : undefined);
  return { files: await begin(logPath, names, placeOf(journal), previous), found };
}

/**
 * Whether a log is that of its journal: by its inode, or, where it was put back from a backup and is another file, by its lines. A
 * backup takes the log before its journal, so that of a log that was written to meanwhile the end is missing.
 */
async function fitOf(
  { inode, size }: { inode: string; size: number },
  end: number,
  { header }: JournalEnd,
  files: { log: string; journal: string },
): Promise<'all' | 'beginning' | 'else'> {
  if (inode !== header.inode) return fitsJournal(files.log, files.journal);
  return size >= end ? 'all' : 'beginning';
}

/** A kill between the two renames of a rotation leaves a journal that has its new name and a log that has not. */
async function finishRotation(logPath: string, names: FileNames): Promise<void> {
  const newest = (await names.list()).at(-1);
  if (newest?.journal === undefined || newest.log !== undefined || newest.gz !== undefined) return;
  if ((await inodeOf(names.journal)) !== undefined) return;
  const [log, journal] = [await inodeOf(logPath), await readJournalEnd(newest.journal)];
  if (log === undefined || journal === undefined) return;
  const end = journal.last?.end ?? 0;
  if ((await fitOf(log, end, journal, { log: logPath, journal: newest.journal })) === 'else') return;
  {
    await using handle = await openForWriting(logPath);
    await handle.truncate(Math.min(log.size, end));
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
  inode: string,
): Promise<OpenFiles> {
  const log = await openForWriting(logPath);
  const handle = await openForWriting(names.journal);
  await log.truncate(end);
  await handle.truncate(journal.size);
  await log.sync();
  await handle.sync();
  const { previous } = journal.header;
  const place = placeOf(journal);
  return { log, journal: handle, inode, end, journalEnd: journal.size, place, previous };
}

/** Starts a log and its journal. What has the log's name and is not empty no journal vouches for: it gets another name. */
export async function begin(
  logPath: string,
  names: FileNames,
  place: Place,
  previous: string,
): Promise<OpenFiles> {
  if (((await inodeOf(logPath))?.size ?? 0) > 0) await rename(logPath, foreignName(logPath));
  const log = await openForWriting(logPath);
  try {
    const { ino, dev } = await log.stat({ bigint: true });
    await log.sync();
    const inode = `${dev}:${ino}`;
    const text = formatHeader({
      format: JOURNAL_FORMAT,
      stream: place.stream,
      seq: place.seq,
      stored_at_ns: String(place.storedAtNs),
      head: place.head,
      inode,
      previous,
    });
    await replaceFile(names.journal, text);
    const journal = await openForWriting(names.journal);
    return { log, journal, inode, end: 0, journalEnd: Buffer.byteLength(text), place, previous };
  } catch (thrown) {
    await log.close();
    throw thrown;
  }
}

/** None of a rotated file, so that nobody takes it for one. */
function foreignName(logPath: string): string {
  return `${logPath}.foreign-${new Date().toISOString().replaceAll(':', '-')}`;
}

/**
 * Gives the journal the name of a rotated file.
 * @param cutLog the log it is of, which lost its end and goes with it; else that is elsewhere
 * @returns the new name, without the folder
 */
export async function archiveJournal(names: FileNames, cutLog?: string): Promise<string> {
  const rotated = await names.list();
  // A rotation that failed half way, on a full disk for one, has given it its new name already.
  if ((await inodeOf(names.journal)) === undefined) {
    return path.basename(rotated.findLast((r) => r.journal !== undefined)?.journal ?? '');
  }
  const rotatedLog = names.rotatedAt(nextStamp(rotated, Date.now()));
  const archived = names.journalOf(rotatedLog);
  await rename(names.journal, archived);
  if (cutLog !== undefined) await rename(cutLog, rotatedLog);
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
