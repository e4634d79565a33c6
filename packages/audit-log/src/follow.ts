import { type FileHandle, open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { listLogParts, readLogLines } from './log-files.ts';

export type FollowOptions = {
  /** So many of the last lines that match come first. */
  last: number;
  /** Goes on with what comes; else it ends there. */
  follow: boolean;
  matches: (line: string) => boolean;
  signal: AbortSignal;
};

/** How often is looked for more, milliseconds. Not every file system tells of changes. */
const LOOK_MS = 200;
const CHUNK_BYTES = 64 * 1024;
const LINE_END = 0x0a;

/**
 * The last lines of a log, then those that are written, over every rotation. A line comes when it is complete. What the
 * writer takes back, because no acknowledgement vouches for it, may have come already.
 * @returns when nothing more is wanted: at the signal, or at the end without `follow`
 */
export async function* followLog(logPath: string, options: FollowOptions): AsyncGenerator<string> {
  const { last, follow, matches, signal } = options;
  let reading = await openLog(logPath);
  try {
    const before = last === 0 ? [] : await lastLines(logPath, last, reading?.end ?? 0, matches);
    yield* before;
    while (follow && !signal.aborted) {
      if (reading === undefined) {
        reading = await openLog(logPath, 0);
      } else {
        yield* reading.more();
        const now = await stat(logPath).catch(() => undefined);
        if (now !== undefined && now.ino !== reading.inode) {
          // Rotated: what came after the last look still stands in the old file.
          yield* reading.more();
          await reading.close();
          reading = await openLog(logPath, 0);
          continue;
        }
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    await reading?.close();
  }
}

/** Of all parts, the newest first, until there are enough; of the one being written only what is before `end`. */
async function lastLines(
  logPath: string,
  count: number,
  end: number,
  matches: (line: string) => boolean,
): Promise<string[]> {
  let found: string[] = [];
  const parts = await listLogParts(logPath);
  for (const [i, { log }] of parts.toReversed().entries()) {
    if (log === undefined) continue;
    const own: string[] = [];
    let at = 0;
    for await (const line of readLogLines(log)) {
      at += Buffer.byteLength(line) + 1;
      if (i === 0 && at > end) break;
      if (!matches(line)) continue;
      own.push(line);
      if (own.length > count) own.shift();
    }
    found = [...own, ...found].slice(-count);
    if (found.length === count) break;
  }
  return found;
}

type Reading = {
  inode: number;
  /** Where its last complete line ended when it was opened. */
  end: number;
  more(): AsyncGenerator<string>;
  close(): Promise<void>;
};

/** @param from where to go on; the end of the last complete line unless given */
async function openLog(logPath: string, from?: number): Promise<Reading | undefined> {
  const handle = await open(logPath, 'r').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined;
    throw thrown;
  });
  if (handle === undefined) return undefined;
  const { ino: inode, size } = await handle.stat();
  const end = from ?? (await endOfLines(handle, size));
  let position = end;
  return {
    inode,
    end,
    async *more() {
      const { size: now } = await handle.stat();
      // The writer has cut off what it had not vouched for.
      if (now < position) position = now;
      let rest = Buffer.alloc(0);
      for (let at = position; ; ) {
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, at);
        if (bytesRead === 0) return;
        at += bytesRead;
        rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
        for (let stop = rest.indexOf(LINE_END); stop >= 0; stop = rest.indexOf(LINE_END)) {
          const line = rest.subarray(0, stop).toString('utf8');
          rest = rest.subarray(stop + 1);
          position += stop + 1;
          yield line;
        }
      }
    },
    close: () => handle.close(),
  };
}

async function endOfLines(handle: FileHandle, size: number): Promise<number> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, end - start, start);
    const found = buffer.subarray(0, bytesRead).lastIndexOf(LINE_END);
    if (found >= 0) return start + found + 1;
    end = start;
  }
  return 0;
}
