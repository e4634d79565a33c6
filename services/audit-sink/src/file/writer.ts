import { rename } from 'node:fs/promises';
import path from 'node:path';
import { nextHead } from './chain.ts';
import { type FileNames, inodeOf, nextStamp, syncFolder, writeAt } from './files.ts';
import { formatRecord, type JournalRecord } from './journal-format.ts';
import { archiveJournal, begin, type OpenFiles, type Place } from './recover.ts';

/** One step of the stream: a line, or none (`s`) for what this file does not hold. */
export type Entry = { kind: JournalRecord['kind']; seq: number; storedAtNs: bigint; line?: Uint8Array };

export type WriterOptions = {
  path: string;
  names: FileNames;
  /** A log is rotated before it would grow beyond this, bytes. */
  maxBytes: number;
  /** Whether data and journal are on the disk, and not only with the system, before `append` returns. */
  sync: boolean;
  onRotated: (file: string) => void;
  /** Someone moved, deleted or shortened the log under us. */
  onReplaced: (how: 'moved' | 'shrunk' | 'grown') => void;
  /** The record of what a log lost that is now this short, from the journal it had. */
  describeLoss: (journal: string, size: number) => Promise<readonly Entry[]>;
};

/** The one writer of a log. Not for two calls at once. */
export type Writer = {
  place(): Place;
  /** Writes the entries and takes them out of the list: after a throw the same call goes on with the rest. */
  append(entries: Entry[]): Promise<void>;
  /** Begins a new file with another place in the stream: the old numbering has ended. */
  startOver(place: Omit<Place, 'head'>): Promise<void>;
  /** Writes down what the log lost that was found shorter at the start. */
  noteLoss(): Promise<void>;
  /** Looks whether the log is still under its name, and makes it anew when not. */
  reopen(): Promise<void>;
  close(): Promise<void>;
};

const LINE_END = Buffer.from('\n');

export function createWriter(opened: OpenFiles, options: WriterOptions): Writer {
  const { names } = options;
  let files = opened;
  /** An earlier write failed half way: what stands beyond `end` is not ours to keep. */
  let torn = false;
  /** Records about the file itself; they come before anything else. */
  const notes: Entry[] = [];

  const closeFiles = async () => {
    await files.log.close().catch(() => {});
    await files.journal.close().catch(() => {});
  };
  const beginAnew = async (place: Place, previous: string) => {
    await closeFiles();
    files = await begin(options.path, names, place, previous);
    torn = false;
  };
  const collectLoss = async () => {
    const journal = path.join(names.dir, files.previous);
    notes.push(...(await options.describeLoss(journal, files.base)));
  };
  const rotate = async (place: Place = files.place) => {
    if (torn) await cut(files);
    const stamp = nextStamp(await names.list(), Date.now());
    const rotated = names.rotatedAt(stamp);
    const journal = names.journalOf(rotated);
    // In this order a kill in between can be told from everything else, and is put right at the next start.
    await rename(names.journal, journal);
    await rename(options.path, rotated);
    await syncFolder(names.dir);
    await beginAnew(place, path.basename(journal));
    options.onRotated(rotated);
  };
  const reopen = async () => {
    const there = await inodeOf(options.path);
    if (there?.inode !== files.inode) {
      await beginAnew(files.place, await archiveJournal(names));
      return options.onReplaced('moved');
    }
    if (there.size < files.end) {
      await beginAnew(files.place, await archiveJournal(names));
      options.onReplaced('shrunk');
      return collectLoss();
    }
    if (!torn && there.size === files.end) return;
    if (!torn) options.onReplaced('grown');
    await cut(files);
    torn = false;
  };
  /** @returns false when the log is in no folder any more, so that nothing is written */
  const writeChunk = async (chunk: Chunk) => {
    torn = true;
    try {
      return await tryChunk(chunk);
    } catch (thrown) {
      // Whoever reads the log meanwhile sees no half line; while the disk is full that may be long.
      await cut(files).catch(() => {});
      throw thrown;
    }
  };
  const tryChunk = async (chunk: Chunk) => {
    await writeAt(files.log, chunk.data, files.end);
    if (options.sync) await files.log.datasync();
    // Deleted between our look and now: what was written is in no folder.
    if ((await files.log.stat()).nlink === 0) return false;
    await writeAt(files.journal, chunk.records, files.journalEnd);
    if (options.sync) await files.journal.datasync();
    files = {
      ...files,
      end: files.end + chunk.data.length,
      journalEnd: files.journalEnd + chunk.records.length,
      place: chunk.place,
    };
    torn = false;
    return true;
  };
  const append = async (entries: Entry[]) => {
    while (entries.length + notes.length > 0) {
      await reopen();
      const queue = notes.length > 0 ? notes : entries;
      const fitting = countFitting(queue, options.maxBytes - files.end);
      if (fitting === 0 && files.end > files.base) {
        await rotate();
        continue;
      }
      const count = Math.max(1, fitting);
      if (await writeChunk(buildChunk(queue.slice(0, count), files))) queue.splice(0, count);
    }
  };
  return {
    place: () => files.place,
    reopen,
    append,
    async noteLoss() {
      await collectLoss();
      await append([]);
    },
    startOver: (place) => rotate({ ...place, head: files.place.head }),
    close: closeFiles,
  };
}

/** Takes away what a failed write left. */
async function cut({ log, journal, end, journalEnd }: OpenFiles): Promise<void> {
  await log.truncate(end);
  await journal.truncate(journalEnd);
}

function countFitting(entries: readonly Entry[], room: number): number {
  let left = room;
  for (const [i, { line }] of entries.entries()) {
    left -= line === undefined ? 0 : line.length + 1;
    if (left < 0) return i;
  }
  return entries.length;
}

type Chunk = { data: Buffer; records: Buffer; place: Place };

function buildChunk(entries: readonly Entry[], { end, place }: OpenFiles): Chunk {
  const parts: Uint8Array[] = [];
  let records = '';
  let at = end;
  let { head } = place;
  for (const { kind, seq, storedAtNs, line } of entries) {
    if (line !== undefined) {
      parts.push(line, LINE_END);
      at += line.length + 1;
      head = nextHead(head, seq, line);
    }
    records += formatRecord({ kind, seq, storedAtNs, end: at, head });
  }
  const { seq, storedAtNs } = entries.at(-1) as Entry;
  return {
    data: Buffer.concat(parts),
    records: Buffer.from(records, 'latin1'),
    place: { ...place, seq, storedAtNs, head },
  };
}
