import type { BridgeClient } from '@colonnade/embedded';
import { canonicalText } from '@colonnade/value';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { startMergeFloor } from '../floor/merge-floor.ts';
import { drive, interleave } from '../measure.ts';
import { BENCH_MINION, type BenchStore, fillBenchEstate, startBenchStack } from '../parts/bench-stack.ts';

const FLOOR_IS = 'a Redis Streams echo, a NATS echo, five opens with bare node:crypto, in two processes';
const SECRET_BYTES = 200;

/** The merge over the bridge: 20 pillars in 5 scopes, 5 secrets, a reply of 3 KB. */
export const merge: Figure = {
  name: 'merge',
  about: 'one merge over the bridge, on SQLite and MongoDB, beside the least any such pair of processes does',
  async measure(options) {
    const rows: Row[] = [];
    for (const store of ['sqlite', 'mongo'] as const) rows.push(...(await measureStore(store, options)));
    return rows;
  },
};

async function measureStore(store: BenchStore, { repeats, trialMs, report }: BenchOptions): Promise<Row[]> {
  await using bench = await startBenchStack(store);
  const credentials = await bench.addMaster('m1');
  await fillBenchEstate(bench.api, 'm1');
  const bridge = bench.connect(credentials);
  const replyBytes = await askOnce(bridge);
  report(`${store}: a reply has ${replyBytes} bytes`);
  await using floor = await startMergeFloor(replyBytes - SECRET_BYTES);
  const at = (concurrency: number) =>
    interleave(repeats, {
      ours: () => drive({ concurrency, ms: trialMs }, () => askOnce(bridge)),
      floor: () => drive({ concurrency, ms: trialMs }, () => floor.ask()),
    });
  const [one, many] = [await at(1), await at(64)];
  const shared = { floorIs: FLOOR_IS } as const;
  const tail = one.ours.p99Ms.median / one.ours.p50Ms.median;
  return [
    against(
      {
        ...{ ...shared, what: `merge, ${store}, p50 at 1`, unit: 'ms', better: 'lower' },
        ...{ ours: one.ours.p50Ms, floor: one.floor.p50Ms },
      },
      { atMost: 1.5 },
    ),
    {
      ...{ what: `merge, ${store}, p99 at 1`, unit: 'ms', better: 'lower', ours: one.ours.p99Ms },
      ...{ floor: one.floor.p99Ms, ...shared },
      goal: { text: '≤ 4 × p50', met: tail <= 4 },
      note: `p99 is ${tail.toFixed(1)} × p50`,
    },
    against(
      {
        ...{ ...shared, what: `merge, ${store}, at 64`, unit: '/s', better: 'higher' },
        ...{ ours: many.ours.perSecond, floor: many.floor.perSecond },
      },
      { atLeast: 0.6 },
    ),
    {
      ...{ what: `merge, ${store}, p99 at 64`, unit: 'ms', better: 'lower', ours: many.ours.p99Ms },
      ...{ floor: many.floor.p99Ms, ...shared },
    },
  ];
}

/** @returns bytes of the reply */
async function askOnce(bridge: BridgeClient): Promise<number> {
  const reply = await bridge.ask({ minionId: BENCH_MINION, pillarenv: 'auto', ttlMs: 10_000 });
  if (!reply.ok) throw new Error(reply.error.message);
  return sizes.get(reply.clock) ?? remember(reply.clock, canonicalText(reply.pillar).length);
}

/** Measured once for each state of the estate, so that measuring costs nothing. */
const sizes = new Map<unknown, number>();

function remember(clock: unknown, bytes: number): number {
  sizes.set(clock, bytes);
  return bytes;
}
