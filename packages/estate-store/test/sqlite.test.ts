import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteReader, openSqliteStore } from '@colonnade/estate-store';
import { type EstateHarness, runEstateContract } from '@colonnade/estate-store/contract-suite';

const WRITER = new URL('./contract-writer.ts', import.meta.url).pathname;

async function createHarness(): Promise<EstateHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'colonnade-estate-'));
  const path = join(folder, 'estate.db');
  return {
    openStore: (options) => openSqliteStore({ path, ...options }),
    openReader: () => openSqliteReader({ path }),
    spawnWriter: () => spawn(process.execPath, [WRITER, path], { stdio: ['ignore', 'pipe', 'inherit'] }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

runEstateContract('SQLite', createHarness);
