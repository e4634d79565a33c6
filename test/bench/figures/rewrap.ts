import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient, BridgeClient } from '@colonnade/embedded';
import { fromPlain, toPlain } from '@colonnade/value';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { drive, spreadOf } from '../measure.ts';
import {
  BENCH_MINION,
  type BenchStack,
  type BenchStore,
  fillBenchEstate,
  startBenchStack,
} from '../parts/bench-stack.ts';

const VALUES = 100_000;
/** What stands in for MongoDB writes a hundred pillars a second. */
const FEW_VALUES = 2000;
const CONCURRENCY = 8;
const KEY_ENV = { KMS_KEY_PREPUBLISH_S: '1', REWRAP_RUN_MS: '0' };

type Progress = { state: string; left: number; run: { rewrapped: number } | null };

/** Keys followed by others while minions ask. */
export const rewrap: Figure = {
  name: 'rewrap',
  about: '100,000 stored values brought under another key: how fast, and what merges wait meanwhile',
  async measure(options) {
    return [await rate('sqlite', options), await rate('mongo', options), ...(await besideMerges(options))];
  },
};

/** As fast as it goes, and nothing else to do. */
async function rate(store: BenchStore, { report }: BenchOptions): Promise<Row> {
  await using bench = await startBenchStack(store, 1, { ...KEY_ENV, REWRAP_PER_SECOND: '1000000' });
  const values = bench.isSubstitute ? FEW_VALUES : VALUES;
  await bench.addMaster('m0');
  await fillSecrets(bench.api, values);
  await rotate(bench.api);
  const startedMs = performance.now();
  await bench.api.call('POST', '/keys/pillars/rewrap');
  const done = await waitUntil(bench.api, ({ state }) => state === 'idle');
  const seconds = (performance.now() - startedMs) / 1000;
  report(`${done.run?.rewrapped} values in ${seconds.toFixed(1)} s`);
  const kind = store === 'mongo' ? 'MongoDB' : 'SQLite';
  return {
    ...{
      what: `rewrap of ${values.toLocaleString('en')} values, no throttle`,
      unit: 'values/s',
      better: 'higher',
    },
    ours: spreadOf([(done.run?.rewrapped ?? 0) / seconds]),
    note: `each in a pillar and its version; ${bench.isSubstitute ? 'a substitute for MongoDB' : kind}`,
  };
}

/** With the throttle as it is shipped. */
async function besideMerges({ repeats, trialMs, report }: BenchOptions): Promise<Row[]> {
  await using bench = await startBenchStack('sqlite', 1, KEY_ENV);
  const credentials = await bench.addMaster('m0');
  await fillBenchEstate(bench.api, 'm0');
  await fillSecrets(bench.api, VALUES);
  const bridge = bench.connect(credentials);
  const merges = () => drive({ concurrency: CONCURRENCY, ms: trialMs }, () => mergeOnce(bridge));
  await merges();
  const [without, during, rotating]: number[][] = [[], [], []];
  for (let round = 0; round < repeats; round++) without?.push((await merges()).p99Ms);
  const [, load] = await Promise.all([
    rotate(bench.api),
    drive({ concurrency: CONCURRENCY, ms: 4000 }, () => mergeOnce(bridge)),
  ]);
  rotating?.push(load.p99Ms);
  await bench.api.call('POST', '/keys/pillars/rewrap');
  await waitUntil(bench.api, ({ run }) => (run?.rewrapped ?? 0) > 0);
  for (let round = 0; round < repeats; round++) during?.push((await merges()).p99Ms);
  const now = await progressOf(bench);
  report(`${now.run?.rewrapped} rewrapped, ${now.left} left at the end of the merges`);
  if (now.state !== 'running')
    throw new Error('the rewrap had ended before the merges did: more values are needed');
  const row = { unit: 'ms', better: 'lower', floor: spreadOf(without ?? []), floorIs: 'without it' } as const;
  return [
    against(
      { ...row, what: `merge p99 during a rewrap, ${CONCURRENCY} at once`, ours: spreadOf(during ?? []) },
      { atMost: 2 },
    ),
    {
      ...{
        ...row,
        what: `merge p99 during a rotation, ${CONCURRENCY} at once`,
        ours: spreadOf(rotating ?? []),
      },
      goal: { text: 'no failed request', met: true },
    },
  ];
}

async function mergeOnce(bridge: BridgeClient): Promise<void> {
  const reply = await bridge.ask({ minionId: BENCH_MINION, pillarenv: 'auto', ttlMs: 5000 });
  if (!reply.ok) throw new Error(`a merge was refused: ${reply.error.code}`);
}

/** Of a target nobody merges, so that merges stay what they are. */
async function fillSecrets(api: ApiClient, values: number): Promise<void> {
  await api.call('POST', '/collections', fromPlain({ id: 'vault', name: 'vault' }));
  const lines: string[] = [];
  for (let i = 0; i < values; i++)
    lines.push(
      `{"kind":"pillar","tgt_type":"collection","collection_id":"vault","name":"s${i}","value":"secret ${i}","is_secret":true}`,
    );
  const headers = { 'content-type': 'application/x-ndjson' };
  const answer = await api.stream('POST', '/import', {
    body: new Blob([lines.join('\n')]).stream(),
    headers,
  });
  await answer.text();
}

async function rotate(api: ApiClient): Promise<void> {
  const made = toPlain((await api.call('POST', '/keys/pillars/rotate')).value ?? null) as { version: number };
  for (;;) {
    const { items } = toPlain((await api.call('GET', '/keys')).value ?? null) as {
      items: { name: string; version: number; state: string }[];
    };
    const isIt = ({ name, version }: (typeof items)[number]) =>
      name === 'pillars' && version === made.version;
    if (items.find(isIt)?.state === 'active') return;
    await delay(100);
  }
}

async function progressOf({ api }: Pick<BenchStack, 'api'>): Promise<Progress> {
  return toPlain((await api.call('GET', '/keys/pillars/rewrap')).value ?? null) as Progress;
}

async function waitUntil(api: ApiClient, is: (now: Progress) => boolean): Promise<Progress> {
  for (;;) {
    const now = await progressOf({ api });
    if (is(now)) return now;
    await delay(250);
  }
}
