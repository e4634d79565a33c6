import { constants, type FileHandle, open, rename, stat } from 'node:fs/promises';
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
