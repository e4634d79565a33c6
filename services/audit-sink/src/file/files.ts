import { constants, type FileHandle, open, readdir, rename, stat } from 'node:fs/promises';
import path from 'node:path';

export const FILE_MODE = 0o600;

/** Opens a file for reading and writing at places; makes it when it is not there. */
export function openForWriting(file: string): Promise<FileHandle> {
  return open(file, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
}

/** Writes all of it at a place; the system may take it in several parts. */
export async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Makes the names in a folder durable: a file that was made or renamed there is found after a power cut. */
export async function syncFolder(dir: string): Promise<void> {
  await using handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  await handle.sync();
}

export async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}.new`;
  {
    await using handle = await open(draft, 'w', FILE_MODE);
    await handle.writeFile(text);
    await handle.sync();
  }
  await rename(draft, file);
  await syncFolder(path.dirname(file));
}

/** Identity of a file, whatever its name; undefined when there is none. */
export async function inodeOf(file: string): Promise<{ inode: string; size: number } | undefined> {
  try {
    const { ino, dev, size } = await stat(file, { bigint: true });
    return { inode: `${dev}:${ino}`, size: Number(size) };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown;
  }
}

const STAMP = '\\d{4}-\\d{2}-\\d{2}T\\d{2}-\\d{2}-\\d{2}\\.\\d{3}';

/** Names around one log: `audit.log`, its journal, and `audit-2026-01-31T12-00-00.000.log` as lumberjack names rotated files. */
export function namesOf(logPath: string) {
  const dir = path.dirname(logPath);
  const extension = path.extname(logPath);
  const stem = path.basename(logPath, extension);
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/gu, '\\$&');
  const rotated = new RegExp(`^${escaped(stem)}-(${STAMP})${escaped(extension)}(\\.gz)?(\\.chain)?$`, 'u');
  const journalOf = (file: string) => `${file}.chain`;
  return {
    dir,
    journal: journalOf(logPath),
    lock: `${logPath}.lock`,
    journalOf,
    rotatedAt: (stamp: string) => path.join(dir, `${stem}-${stamp}${extension}`),
    /** Stamps of rotated files and journals, oldest first, with what is there of each. */
    async list(): Promise<Rotated[]> {
      const byStamp = new Map<string, Rotated>();
      for (const name of await readdir(dir)) {
        const [, stamp, gz, chain] = rotated.exec(name) ?? [];
        if (stamp === undefined) continue;
        const one = byStamp.get(stamp) ?? { stamp, log: undefined, gz: undefined, journal: undefined };
        const kind = chain !== undefined ? 'journal' : gz !== undefined ? 'gz' : 'log';
        byStamp.set(stamp, { ...one, [kind]: path.join(dir, name) });
      }
      return [...byStamp.values()].sort((a, b) => (a.stamp < b.stamp ? -1 : 1));
    },
  };
}

export type FileNames = ReturnType<typeof namesOf>;
export type Rotated = {
  stamp: string;
  log: string | undefined;
  gz: string | undefined;
  journal: string | undefined;
};

/** A stamp that no rotated file has yet, and later than all of them, so that their order is the order of their names. */
export function nextStamp(existing: readonly Rotated[], nowMs: number): string {
  const render = (ms: number) => new Date(ms).toISOString().replaceAll(':', '-').replace('Z', '');
  const last = existing.at(-1)?.stamp;
  const now = render(nowMs);
  if (last === undefined || now > last) return now;
  const [day = '', time = ''] = last.split('T');
  return render(Date.parse(`${day}T${time.replaceAll('-', ':')}Z`) + 1);
}
