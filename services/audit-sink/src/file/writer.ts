import { rename } from 'node:fs/promises';
import path from 'node:path';
import { type FileNames, nextStamp } from '@colonnade/audit-log';
import { buildChunk, type Chunk, countFitting, type Entry } from './chunk.ts';
import { inodeOf, syncFolder, writeAt } from './files.ts';
import { archiveJournal, begin, type OpenFiles, type Place } from './recover.ts';

export type WriterOptions = {
  path: string;
  names: FileNames;
  /** A log is rotated before it would grow beyond this, bytes. */
  maxBytes: number;
  /** Whether data and journal are on the disk, and not only with the system, before `append` returns. */
  sync: boolean;
  onRotated: (file: string) => void;
  /** Someone moved, deleted or shortened the log under us, or wrote to it. */
  onReplaced: (how: 'moved' | 'deleted' | 'shrunk' | 'grown') => void;
  /** The record of what a log lost, from the journal it had. @param size bytes it has now; undefined when it is gone */
  describeLoss: (journal: string, size: number | undefined) => Promise<readonly Entry[]>;
};

/** The one writer of a log. Not for two calls at once. */
export type Writer = {
  place(): Place;
  /** Writes the entries and takes them out of the list: after a throw the same call goes on with the rest. */
  append(entries: Entry[]): Promise<void>;
  /** Begins a new file with another place in the stream: the old numbering has ended. */
  startOver(place: Omit<Place, 'head'>): Promise<void>;
  /** Writes down what the log lost that was found shorter, or not at all, at the start. */
  noteLoss(): Promise<void>;
  /** Looks whether the log is still under its name, and makes it anew when not. */
  reopen(): Promise<void>;
  close(): Promise<void>;
};

type State = {
  files: OpenFiles;
  /** An earlier write failed half way: what stands beyond `end` is not ours to keep. */
  torn: boolean;
  /** Records about the file itself; they come before anything else. */
  notes: Entry[];
};

export function createWriter(opened: OpenFiles, options: WriterOptions): Writer {
  const state: State = { files: opened, torn: false, notes: [] };
  const append = async (entries: Entry[]) => {
    while (entries.length + state.notes.length > 0) {
      await reopen(state, options);
      const { end } = state.files;
      const queue = state.notes.length > 0 ? state.notes : entries;
      const fitting = countFitting(queue, options.maxBytes - end);
      if (fitting === 0 && end > 0) {
        await rotate(state, options, state.files.place);
        continue;
      }
      const count = Math.max(1, fitting);
      const chunk = buildChunk(queue.slice(0, count), end, state.files.place);
      if (await writeChunk(state, chunk, options.sync)) queue.splice(0, count);
    }
  };
  return {
    place: () => state.files.place,
    append,
    reopen: () => reopen(state, options),
    startOver: (place) => rotate(state, options, { ...place, head: state.files.place.head }),
    async noteLoss() {
      await collectLoss(state, options);
      await append([]);
    },
    close: () => closeFiles(state.files),
  };
}

async function reopen(state: State, options: WriterOptions): Promise<void> {
  const there = await inodeOf(options.path);
  const { log, inode, end, place } = state.files;
  if (there?.inode !== inode || there.size < end) {
    const shrunk = there?.inode === inode;
    const deleted = !shrunk && (await log.stat()).nlink === 0;
    const previous = await archiveJournal(options.names, shrunk ? options.path : undefined);
    await beginAnew(state, options, place, previous);
    options.onReplaced(shrunk ? 'shrunk' : deleted ? 'deleted' : 'moved');
    if (shrunk || deleted) await collectLoss(state, options);
    return;
  }
  if (!state.torn && there.size === end) return;
  if (!state.torn) options.onReplaced('grown');
  await cut(state.files);
  state.torn = false;
}

async function rotate(state: State, options: WriterOptions, place: Place): Promise<void> {
  const { names } = options;
  if (state.torn) await cut(state.files);
  const rotated = names.rotatedAt(nextStamp(await names.list(), Date.now()));
  const journal = names.journalOf(rotated);
  // In this order a kill in between can be told from everything else, and is put right at the next start.
  await rename(names.journal, journal);
  await rename(options.path, rotated);
  await syncFolder(names.dir);
  await beginAnew(state, options, place, path.basename(journal));
  options.onRotated(rotated);
}

async function beginAnew(
  state: State,
  options: WriterOptions,
  place: Place,
  previous: string,
): Promise<void> {
  await closeFiles(state.files);
  state.files = await begin(options.path, options.names, place, previous);
  state.torn = false;
}

async function collectLoss(state: State, { names, describeLoss }: WriterOptions): Promise<void> {
  const journal = path.join(names.dir, state.files.previous);
  const left = await inodeOf(journal.slice(0, -path.extname(journal).length));
  state.notes.push(...(await describeLoss(journal, left?.size)));
}

/** @returns false when the log is in no folder any more, so that nothing is written */
async function writeChunk(state: State, chunk: Chunk, sync: boolean): Promise<boolean> {
  const { files } = state;
  const { log, journal, end, journalEnd } = files;
  state.torn = true;
  try {
    await writeAt(log, chunk.data, end);
    if (sync) await log.datasync();
    // Deleted between our look and now: what was written is in no folder.
    if ((await log.stat()).nlink === 0) return false;
    await writeAt(journal, chunk.records, journalEnd);
    if (sync) await journal.datasync();
  } catch (thrown) {
    // Whoever reads the log meanwhile sees no half line; while the disk is full that may be long.
    await cut(files).catch(() => {});
    throw thrown;
  }
  state.files = {
    ...files,
    end: end + chunk.data.length,
    journalEnd: journalEnd + chunk.records.length,
    place: chunk.place,
  };
  state.torn = false;
  return true;
}

/** Takes away what a failed write left. */
async function cut({ log, journal, end, journalEnd }: OpenFiles): Promise<void> {
  await log.truncate(end);
  await journal.truncate(journalEnd);
}

async function closeFiles({ log, journal }: OpenFiles): Promise<void> {
  await log.close().catch(() => {});
  await journal.close().catch(() => {});
}
