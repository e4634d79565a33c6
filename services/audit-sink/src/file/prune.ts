import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { FileNames, Rotated } from '@colonnade/audit-log';
import { FILE_MODE, syncFolder } from './files.ts';
import { type JournalEnd, readJournalEnd } from './journal.ts';
import { placeOf } from './recover.ts';

export type KeepOptions = {
  /** Rotated files kept, newest first; 0: all. */
  maxBackups: number;
  /** Days a rotated file is kept; 0: for ever. */
  maxAgeDays: number;
  compress: boolean;
};

const DAY_MS = 86_400_000;
const DRAFT = '.gz.new';

/** What is removed: sequences from the first to the last, and the head of the chain where what is kept begins. */
export type Removal = { from: number; to: number; keptFrom: string };

/**
 * Keeps the rotated files to what was asked for, as lumberjack does: the oldest go first, those that stay are compressed.
 * A file's journal stays and goes with it.
 * @param record writes into the log that the sink itself removes them
 * @returns the logs that were removed
 */
export async function pruneRotated(
  names: FileNames,
  keep: KeepOptions,
  nowMs: number,
  signal: AbortSignal,
  record: (removal: Removal) => Promise<void>,
): Promise<string[]> {
  const rotated = await names.list();
  const expired = new Set(rotated.filter((one) => isExpired(one, keep, nowMs)));
  if (keep.maxBackups > 0) {
    for (const one of rotated.slice(0, Math.max(0, rotated.length - keep.maxBackups))) expired.add(one);
  }
  const removed = await remove([...expired], record);
  if (keep.compress) {
    for (const { log } of rotated.filter((one) => !expired.has(one))) {
      if (signal.aborted) break;
      if (log !== undefined) await compress(log, signal);
    }
  }
  await syncFolder(names.dir);
  return removed;
}

/** A log goes before its journal, and its journal only when the removal is on record. */
async function remove(
  expired: readonly Rotated[],
  record: (removal: Removal) => Promise<void>,
): Promise<string[]> {
  const removal = await removalOf(expired);
  const told =
    removal === undefined ||
    (await record(removal).then(
      () => true,
      () => false,
    ));
  const logs = expired.flatMap(({ log, gz }) => [log ?? [], gz ?? []].flat());
  for (const file of logs) await rm(file, { force: true });
  // On a full disk there is room to say so only now.
  if (!told) await record(removal);
  for (const { journal } of expired) if (journal !== undefined) await rm(journal, { force: true });
  return logs.map((file) => path.basename(file));
}

async function removalOf(expired: readonly Rotated[]): Promise<Removal | undefined> {
  const ends: JournalEnd[] = [];
  for (const { journal } of expired) {
    const end = journal === undefined ? undefined : await readJournalEnd(journal);
    if (end !== undefined) ends.push(end);
  }
  const [first, last] = [ends[0], ends.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const { seq, head } = placeOf(last);
  return { from: first.header.seq + 1, to: seq, keptFrom: head };
}

/** Compressed copies that a killed process left unfinished. */
export async function removeDrafts(names: FileNames): Promise<void> {
  for (const name of await readdir(names.dir)) {
    if (name.endsWith(DRAFT)) await rm(path.join(names.dir, name), { force: true });
  }
}

function isExpired({ stamp }: Rotated, { maxAgeDays }: KeepOptions, nowMs: number): boolean {
  if (maxAgeDays === 0) return false;
  const [day = '', time = ''] = stamp.split('T');
  return nowMs - Date.parse(`${day}T${time.replaceAll('-', ':')}Z`) > maxAgeDays * DAY_MS;
}

/** The original goes only when its compressed copy is whole and on the disk. */
async function compress(log: string, signal: AbortSignal): Promise<void> {
  const draft = `${log}${DRAFT}`;
  try {
    await pipeline(createReadStream(log), createGzip(), createWriteStream(draft, { mode: FILE_MODE }), {
      signal,
    });
    {
      await using handle = await open(draft, 'r+');
      await handle.sync();
    }
    await rename(draft, `${log}.gz`);
    await rm(log, { force: true });
  } catch (thrown) {
    await rm(draft, { force: true });
    if (!signal.aborted) throw thrown;
  }
}
