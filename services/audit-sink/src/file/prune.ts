import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { FileNames, Rotated } from '@colonnade/audit-log';
import { FILE_MODE, syncFolder } from './files.ts';

export type KeepOptions = {
  /** Rotated files kept, newest first; 0: all. */
  maxBackups: number;
  /** Days a rotated file is kept; 0: for ever. */
  maxAgeDays: number;
  compress: boolean;
};

const DAY_MS = 86_400_000;
const DRAFT = '.gz.new';

/**
 * Keeps the rotated files to what was asked for, as lumberjack does: the oldest go first, those that stay are compressed.
 * A file's journal stays and goes with it.
 * @returns the logs that were removed
 */
export async function pruneRotated(
  names: FileNames,
  keep: KeepOptions,
  nowMs: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rotated = await names.list();
  const expired = new Set(rotated.filter((one) => isExpired(one, keep, nowMs)));
  if (keep.maxBackups > 0) {
    for (const one of rotated.slice(0, Math.max(0, rotated.length - keep.maxBackups))) expired.add(one);
  }
  const removed: string[] = [];
  for (const { log, gz, journal } of expired) {
    for (const file of [log, gz, journal]) if (file !== undefined) await rm(file, { force: true });
    const gone = gz ?? log;
    if (gone !== undefined) removed.push(path.basename(gone));
  }
  if (keep.compress) {
    for (const { log } of rotated.filter((one) => !expired.has(one))) {
      if (signal.aborted) break;
      if (log !== undefined) await compress(log, signal);
    }
  }
  await syncFolder(names.dir);
  return removed;
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
