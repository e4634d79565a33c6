import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export type TempDir = AsyncDisposable & { readonly path: string };

/** A fresh folder that goes with its owner: `await using dir = await tempDir('relay')`. */
export async function tempDir(label = 'test'): Promise<TempDir> {
  // The real path: macOS hands out one below a link, and unix sockets need it short.
  const dir = await realpath(await mkdtemp(path.join(tmpdir(), `colonnade-${label}-`)));
  return {
    path: dir,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true, maxRetries: 3 }),
  };
}
