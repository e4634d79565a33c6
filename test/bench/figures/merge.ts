import type { BridgeClient } from '@colonnade/embedded';
import { canonicalText } from '@colonnade/value';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { startMergeFloor } from '../floor/merge-floor.ts';
import { drive, interleave, type Load, type Spread } from '../measure.ts';
import { askForPillar, type BenchStore, fillBenchEstate, startBenchStack } from '../parts/bench-stack.ts';

const FLOOR_IS = 'a Redis Streams echo, a NATS echo, five opens with bare node:crypto, in two processes';
const SECRET_BYTES = 200;
const MANY = 64;
/** What the floor leaves out, as it was measured: see the README beside. */
const ONE_REASON =
  'the floor puts nothing on record. Each merge waits for its record, which the server syncs to disk: half of what a merger takes';
const MANY_REASON =
  'with all processes on two cores what counts is their time together, and the floor has no records, no checks and no store. See README.md, where the time goes';

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
  const [apart, together] = [bench.connect(credentials), bench.connect(credentials, true)];
  const replyBytes = await askOnce(apart);
  report(`${store}: a reply has ${replyBytes} bytes`);
  await using floor = await startMergeFloor(replyBytes - SECRET_BYTES);
  const at = (concurrency: number) => {
    const load = { concurrency, ms: trialMs };
    return interleave(repeats, {
      ours: () => drive(load, () => askOnce(apart)),
      floor: () => drive(load, () => floor.ask()),
      together: () => drive(load, () => askOnce(together)),
    });
  };
  return [...rowsAtOne(store, await at(1)), ...rowsAtMany(store, await at(MANY))];
}

type Found = Record<'ours' | 'floor' | 'together', Record<keyof Load, Spread>>;

function rowsAtOne(store: BenchStore, { ours, floor }: Found): Row[] {
  const row = { unit: 'ms', better: 'lower', floorIs: FLOOR_IS } as const;
  const tail = ours.p99Ms.median / ours.p50Ms.median;
  return [
    against(
      {
        ...{ ...row, what: `merge, ${store}, p50 at 1`, ours: ours.p50Ms, floor: floor.p50Ms },
        reason: ONE_REASON,
      },
      { atMost: 1.5 },
    ),
    {
      ...{ ...row, what: `merge, ${store}, p99 at 1`, ours: ours.p99Ms, floor: floor.p99Ms },
      goal: { text: '≤ 4 × p50', met: tail <= 4 },
      note: `p99 is ${tail.toFixed(1)} × p50`,
    },
  ];
}

function rowsAtMany(store: BenchStore, { ours, floor, together }: Found): Row[] {
  const row = { unit: '/s', better: 'higher', floorIs: FLOOR_IS, floor: floor.perSecond } as const;
  const what = `merge, ${store}, at ${MANY}`;
  return [
    against({ ...row, what, ours: ours.perSecond, reason: MANY_REASON }, { atLeast: 0.6 }),
    { ...row, what: `${what}, all replies over one connection`, ours: together.perSecond },
    {
      ...{ what: `merge, ${store}, p99 at ${MANY}`, unit: 'ms', better: 'lower', ours: ours.p99Ms },
      ...{ floor: floor.p99Ms, floorIs: FLOOR_IS },
    },
  ];
}

/** @returns bytes of the reply */
async function askOnce(bridge: BridgeClient): Promise<number> {
  const reply = await askForPillar(bridge);
  return sizes.get(reply.clock) ?? remember(reply.clock, canonicalText(reply.pillar).length);
}

/** Measured once for each state of the estate, so that measuring costs nothing. */
const sizes = new Map<unknown, number>();

function remember(clock: unknown, bytes: number): number {
  sizes.set(clock, bytes);
  return bytes;
}
