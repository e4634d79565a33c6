import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { RunningServer } from '@colonnade/embedded/servers';
import { waitFor } from '../../support/wait-for.ts';
import type { BenchOptions, Figure, Row } from '../figure.ts';
import { spreadOf } from '../measure.ts';
import { askForPillar, type BenchStack, type BenchStore, startBenchStack } from '../parts/bench-stack.ts';
import { filledMinion, fillPillars, openFilled, PILLARS_PER_MINION } from '../parts/fill.ts';
import { residentMiB } from '../parts/memory.ts';

const LARGE = 1_000_000;
const USUAL = 100_000;
/** What stands in for MongoDB writes a hundred pillars a second: a small estate is all that can be waited for. */
const SUBSTITUTE = 5000;
const MERGES_AT_ONCE = 16;
const KIB = 1024;

/** What an estate costs: disk, memory, and the time a service takes to start on it. */
export const capacity: Figure = {
  name: 'capacity',
  about:
    'disk, memory and start time with 10⁵ pillars (--large: 10⁶), on SQLite and, where there is one, MongoDB',
  async measure(options) {
    const rows: Row[] = [];
    for (const store of ['sqlite', 'mongo'] as const) rows.push(...(await measureStore(store, options)));
    return rows;
  },
};

async function measureStore(kind: BenchStore, { large, report }: BenchOptions): Promise<Row[]> {
  await using bench = await startBenchStack(kind);
  const pillars = bench.isSubstitute ? SUBSTITUTE : large ? LARGE : USUAL;
  const count = pillars.toLocaleString('en');
  const what = bench.isSubstitute ? 'a substitute for MongoDB' : kind;
  const credentials = await bench.addMaster('m1');
  const { api, mergers } = bench.stack;
  const merger = mergers[0] as (typeof mergers)[number];
  const before = {
    disk: await sizeOf(bench.storeDir),
    api: await residentMiB(api.pid),
    merger: await residentMiB(merger.pid),
  };
  {
    await using store = await openFilled(bench.place);
    await fillPillars(store, 'm1', 0, pillars, (text) => report(`${what}: ${text}`));
  }
  const disk = (await sizeOf(bench.storeDir)) - before.disk;
  report(`${what}: a merge for each minion`);
  await mergeAll(bench, credentials, pillars / PILLARS_PER_MINION);
  const merged = await residentMiB(merger.pid);
  const per = pillars / USUAL;
  const one = (name: string, unit: string, value: number, note?: string): Row => ({
    ...{ what: `${what}, ${count} pillars: ${name}`, unit, better: 'lower', ours: spreadOf([value]) },
    ...(note === undefined ? {} : { note }),
  });
  return [
    one(
      'disk for each pillar',
      'KiB',
      disk / KIB / pillars,
      'with its version in the history, keys and indexes; values of 170 bytes',
    ),
    one(
      'pillar-api, memory for each 100,000',
      'MiB',
      ((await residentMiB(api.pid)) - before.api) / per,
      'pillar-api reads the store and keeps nothing of it: what is there is the coming and going of its own heap',
    ),
    one(
      'pillar-merger after a merge for every minion, memory',
      'MiB',
      merged,
      `${Math.round(before.merger)} MiB when it had merged nothing; its cache is bounded by CACHE_BYTES`,
    ),
    one('pillar-api, start', 'ms', await startTime(api, api.url)),
    one('pillar-merger, start', 'ms', await startTime(merger, merger.url)),
  ];
}

async function mergeAll(
  bench: BenchStack,
  credentials: Parameters<BenchStack['connect']>[0],
  minions: number,
) {
  const bridge = bench.connect(credentials, true);
  let next = 0;
  const one = async () => {
    while (next < minions) await askForPillar(bridge, filledMinion(next++));
  };
  await Promise.all(Array.from({ length: MERGES_AT_ONCE }, one));
}

/** From its start until it is ready, with everything it reads at start. */
async function startTime(server: RunningServer, url: string): Promise<number> {
  await server.kill('SIGTERM');
  const startedMs = performance.now();
  await server.restart();
  await waitFor('readiness', async () => (await fetch(`${url}/readyz`)).ok, { limitMs: 60_000, everyMs: 5 });
  return performance.now() - startedMs;
}

async function sizeOf(dir: string): Promise<number> {
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    files.filter((f) => f.isFile()).map((f) => stat(path.join(f.parentPath, f.name)).then((s) => s.size)),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}
