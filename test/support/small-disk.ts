import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type TempDir, tempDir } from './temp.ts';

const run = promisify(execFile);

/** A file system of its own that is soon full; it is in memory and goes with the test. */
export type SmallDisk = AsyncDisposable & { readonly path: string };

/** Why there can be none here, or false: mounting needs Linux and root. */
export function skipWithoutMount(): false | string {
  if (process.platform !== 'linux') return 'a small file system needs Linux';
  return process.getuid?.() === 0 ? false : 'a small file system needs root';
}

/** @throws Error when the system does not let us mount one */
export async function smallDisk(megabytes: number): Promise<SmallDisk> {
  const dir: TempDir = await tempDir('disk');
  const point = path.join(dir.path, 'mount');
  await mkdir(point);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', point]);
  return {
    path: point,
    async [Symbol.asyncDispose]() {
      await run('umount', ['-l', point]);
      await dir[Symbol.asyncDispose]();
    },
  };
}
