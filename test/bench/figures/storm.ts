import { setTimeout as delay } from 'node:timers/promises';
import type { BridgeClient } from '@colonnade/embedded';
import { openEstateStore, parsePlace } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { type MergeFloor, startMergeFloor } from '../floor/merge-floor.ts';
import { spreadOf } from '../measure.ts';
import { askForPillar, fillBenchEstate, startBenchStack } from '../parts/bench-stack.ts';
import { residentMiB } from '../parts/memory.ts';

const MASTERS = 50;
const WORKERS = 5;
const MINIONS = 10_000;
const BATCH = 500;
const REPLY_BYTES = 2500;
const SETTLE_MS = 3000;
const REASON =
  'with all processes on two cores what counts is their time together, as in merge at 64; a second merger needs a core of its own';

type Master = { id: string; bridges: readonly BridgeClient[]; minions: readonly string[] };

/** Every minion of an estate asks at once, as after a power cut. */
export const storm: Figure = {
  name: 'storm',
  about: 'a highstate storm: 50 masters × 5 workers, 10,000 minions, with one merger and with two',
  async measure(options) {
    return [...(await storms(1, options)), ...(await storms(2, options))];
  },
};

async function storms(mergers: number, { repeats, report }: BenchOptions): Promise<Row[]> {
  await using bench = await startBenchStack('sqlite', mergers);
  const masters: Master[] = [];
  for (let m = 0; m < MASTERS; m++) {
    const id = `m${m}`;
    const credentials = await bench.addMaster(id);
    const bridges = Array.from({ length: WORKERS }, () => bench.connect(credentials));
    const minions = Array.from({ length: MINIONS / MASTERS }, (_, i) => `minion-${m}-${i}.example`);
    masters.push({ id, bridges, minions });
  }
  await fillBenchEstate(bench.api, 'm0');
  await putMinions(bench.place, masters);
  await using floor = await startMergeFloor(REPLY_BYTES);
  const resident = async () =>
    (await Promise.all(bench.stack.mergers.map(({ pid }) => residentMiB(pid)))).reduce((a, b) => a + b, 0);
  const [times, floorTimes, memory]: number[][] = [[], [], []];
  for (let round = 0; round <= repeats; round++) {
    const tookS = await askAll(masters);
    const floorS = await floorStorm(floor);
    await delay(SETTLE_MS);
    memory?.push(await resident());
    report(
      `${mergers} merger(s): ${tookS.toFixed(1)} s, floor ${floorS.toFixed(1)} s, ${memory?.at(-1)?.toFixed(0)} MiB after`,
    );
    if (round === 0) continue;
    times?.push(tookS);
    floorTimes?.push(floorS);
  }
  // The round that does not count fills caches and heap.
  const counted = memory?.slice(1) ?? [];
  const [first = 0] = counted;
  const after = spreadOf(counted);
  const what = `storm of ${MINIONS.toLocaleString('en')} minions, ${mergers} merger${mergers > 1 ? 's' : ''}`;
  return [
    against(
      {
        ...{
          what,
          unit: 's',
          better: 'lower',
          ours: spreadOf(times ?? []),
          floor: spreadOf(floorTimes ?? []),
        },
        floorIs: 'as many asks of the least pair of processes, 250 at once',
        note: 'all answered, each with its own pillar',
        reason: REASON,
      },
      { atMost: 1.67 },
    ),
    {
      ...{ what: `${what}: memory afterwards`, unit: 'MiB', better: 'lower', ours: after },
      ...{ floor: spreadOf([first]), floorIs: 'after the first of these storms' },
      goal: { text: 'flat: ≤ 1.2 ×', met: after.max <= 1.2 * first },
    },
  ];
}

/** Past HTTP: registering is not what is measured. Each minion has its own pillar, by which a wrong answer shows. */
async function putMinions(place: string, masters: readonly Master[]): Promise<void> {
  await using store = await openEstateStore(parsePlace(place));
  const write = (mutations: Parameters<typeof store.write>[0]['mutations']) =>
    store.write({ mutations, events: [], by: 'bench', atMs: Date.now() });
  for (const { id: master, minions } of masters) {
    for (let at = 0; at < minions.length; at += BATCH) {
      const ids = minions.slice(at, at + BATCH);
      await write(
        ids.map((id) => ({
          kind: 'minion.put',
          expect: 'absent',
          record: { master, id, collections: ['role'], registeredBy: 'bench' },
        })),
      );
      await write(
        ids.map((id) => ({
          kind: 'pillar.create',
          record: {
            ...{
              pid: `own-${id}`,
              tgtType: 'minion',
              tgtId: id,
              pillarenv: `minion_id:${id};master:${master}`,
            },
            ...{ name: 'own', value: id, isSecret: false },
          },
        })),
      );
    }
  }
}

/** @returns seconds until the last minion has its pillar @throws when one is not answered, or wrongly */
async function askAll(masters: readonly Master[]): Promise<number> {
  const startedMs = performance.now();
  await Promise.all(
    masters.flatMap(({ bridges, minions }) => {
      const left = [...minions];
      return bridges.map(async (bridge) => {
        for (let id = left.pop(); id !== undefined; id = left.pop()) {
          const { pillar } = await askForPillar(bridge, id);
          const { own } = pillar as Record<string, Value>;
          if (own !== id) throw new Error(`${id} was given the pillar of ${String(own)}`);
        }
      });
    }),
  );
  return (performance.now() - startedMs) / 1000;
}

async function floorStorm(floor: MergeFloor): Promise<number> {
  const startedMs = performance.now();
  let left = MINIONS;
  await Promise.all(
    Array.from({ length: MASTERS * WORKERS }, async () => {
      while (left-- > 0) await floor.ask();
    }),
  );
  return (performance.now() - startedMs) / 1000;
}
