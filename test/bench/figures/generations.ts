import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { minionTarget, rootTarget } from '@colonnade/contracts';
import type { BridgeClient } from '@colonnade/embedded';
import type { EstateStore, Mutation, PillarRecord } from '@colonnade/estate-store';
import { fromPlain, toPlain } from '@colonnade/value';
import { writeEstate } from '../../support/stack.ts';
import { tempDir } from '../../support/temp.ts';
import { waitFor } from '../../support/wait-for.ts';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { spreadOf } from '../measure.ts';
import { type BenchStack, startBenchStack } from '../parts/bench-stack.ts';
import { filledMinion, openFilled } from '../parts/fill.ts';

const MASTER = 'm1';
const MINIONS = 10_000;
const ROOT_PILLARS = 10;
const BATCH = 500;
const VALUE = fromPlain({ port: 8080, hosts: ['a.example', 'b.example'], text: 'x'.repeat(120) });
const LONG = { limitMs: 300_000, everyMs: 50 };

type Generation = { id: string; ended_at: string; updated_count: bigint | number };

const ROOT_REASON =
  'mergers, NATS and pillar-api compile on the same two cores meanwhile, which the loop has for itself';

/** What a change costs until the policies of those it touches are in force. */
export const generations: Figure = {
  name: 'generations',
  about: "one minion's change in an estate of 10,000, and a root change for all of them",
  async measure(options) {
    await using bench = await startBenchStack('sqlite', 2);
    const credentials = await bench.addMaster(MASTER);
    {
      await using store = await openFilled(bench.place);
      await fill(store);
    }
    options.report(`${MINIONS} minions, ${ROOT_PILLARS} pillars for all and one of each`);
    const write = writeEstate(bench.api);
    const { pid } = await write.pillar({ tgt_type: 'root' }, 'motd', 'round 0');
    await generationAfter(bench, '', MINIONS);
    const one = await measureOne(bench, bench.connect(credentials), options);
    const all = await measureAll(bench, pid, options);
    return [...one, ...all];
  },
};

/** Past HTTP, which would take minutes; a change over HTTP afterwards has everything compiled. */
async function fill(store: EstateStore): Promise<void> {
  const write = (mutations: readonly Mutation[]) =>
    store.write({ mutations, events: [], by: 'bench', atMs: Date.now() });
  const create = (place: Pick<PillarRecord, 'tgtType' | 'tgtId' | 'pillarenv'>, name: string): Mutation => ({
    kind: 'pillar.create',
    record: { pid: randomUUID(), ...place, name, value: VALUE, isSecret: false },
  });
  await write(Array.from({ length: ROOT_PILLARS }, (_, i) => create(rootTarget, `pillar_${i}`)));
  for (let at = 0; at < MINIONS; at += BATCH) {
    const ids = Array.from({ length: BATCH }, (_, i) => filledMinion(at + i));
    await write(
      ids.map((id) => {
        const record = { master: MASTER, id, collections: [], registeredBy: 'bench' };
        return { kind: 'minion.put', expect: 'absent', record };
      }),
    );
    await write(ids.map((id) => create(minionTarget(id, MASTER), 'of_minion')));
  }
}

/** The first generation after another that updated so many. */
async function generationAfter({ api }: BenchStack, after: string, count: number): Promise<Generation> {
  return await waitFor(
    'the generation',
    async () => {
      const { value } = await api.call('GET', '/generations?limit=20');
      const { items } = toPlain(value ?? null) as unknown as { items: Generation[] };
      return items.find(({ id, updated_count }) => id > after && Number(updated_count) === count);
    },
    LONG,
  );
}

function lasted({ id, ended_at }: Generation): number {
  return Date.parse(ended_at) - Date.parse(id);
}

async function measureOne(bench: BenchStack, bridge: BridgeClient, options: BenchOptions): Promise<Row[]> {
  const minionId = filledMinion(17);
  const write = writeEstate(bench.api);
  const target = { tgt_type: 'minion', master: MASTER, minion_id: minionId };
  const { pid } = await write.pillar(target, 'own', 'round 0');
  let last = await generationAfter(bench, '', 1);
  const [ours, merges, hooks]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= 2 * options.repeats; round++) {
    await write.update(pid, `round ${round}`);
    last = await generationAfter(bench, last.id, 1);
    ours.push(lasted(last));
    hooks.push(await hookTime(bench, last.id));
    const beganMs = performance.now();
    await bridge.ask({ minionId, pillarenv: 'auto', ttlMs: 10_000 });
    merges.push(performance.now() - beganMs);
  }
  const [row, merge, hook] = [spreadOf(ours), spreadOf(merges), spreadOf(hooks)];
  return [
    {
      ...{ what: "generation, one minion's change among 10,000", unit: 'ms', better: 'lower', ours: row },
      ...{ floor: merge, floorIs: 'one merge of that minion over the bridge' },
      goal: { text: '≤ 3 × + hooks', met: row.median <= 3 * merge.median + hook.median },
      note: `from its begin to its end; its hooks (the shipped one) take ${hook.median.toFixed(0)} ms of that`,
    },
  ];
}

/** Of the hooks at the end of a generation, as the history has them. */
async function hookTime({ api }: BenchStack, generation: string): Promise<number> {
  const { value } = await api.call('GET', '/hooks/runs?limit=5&event=policy-generation-finished');
  type Run = { run: string; begun_at: string; ended_at: string };
  const { items } = toPlain(value ?? null) as unknown as { items: Run[] };
  const run = items.find((one) => one.run.includes(generation));
  return run === undefined ? 0 : Date.parse(run.ended_at) - Date.parse(run.begun_at);
}

async function measureAll(bench: BenchStack, pid: string, { repeats, report }: BenchOptions): Promise<Row[]> {
  // Without hooks: what remains is ours.
  for (const event of ['policy-generation-finished', 'policy-generation-failed']) {
    await rm(path.join(bench.stack.hooksDir, event, '50-salt-refresh-pillar'), { force: true });
  }
  const write = writeEstate(bench.api);
  const text = await policyText(bench);
  await using dir = await tempDir('bench-floor');
  const [ours, synced, bare]: [number[], number[], number[]] = [[], [], []];
  let last = '';
  for (let round = 0; round <= Math.min(repeats, 3); round++) {
    const before = (await generationAfter(bench, '', last === '' ? 1 : MINIONS)).id;
    await write.update(pid, `another round ${round}`);
    const generation = await generationAfter(bench, before, MINIONS);
    last = generation.id;
    const floors = [await bareLoop(dir.path, text, true), await bareLoop(dir.path, text, false)];
    if (round === 0) continue;
    ours.push(MINIONS / (lasted(generation) / 1000));
    synced.push(floors[0] as number);
    bare.push(floors[1] as number);
    report(`round ${round}: ${lasted(generation)} ms`);
  }
  const common = { unit: 'minions/s', better: 'higher', ours: spreadOf(ours) } as const;
  return [
    against(
      {
        ...{ what: 'generation, a root change for 10,000', ...common, floor: spreadOf(synced) },
        floorIs: 'a loop that writes, syncs and renames the same files, four at once',
        reason: ROOT_REASON,
        note: 'two mergers, no hooks; the runner reads, compares, writes and notes with one thread, and shares two cores with the mergers',
      },
      { atLeast: 0.5 },
    ),
    {
      ...{ what: 'generation, beside unsynced files', ...common, floor: spreadOf(bare) },
      floorIs: 'the same loop without syncing them',
    },
  ];
}

async function policyText({ stack }: BenchStack): Promise<string> {
  const file = path.join(stack.dir, 'hooks', 'share', MASTER, filledMinion(0), 'rules', 'pillar.json');
  await using handle = await open(file);
  return await handle.readFile('utf8');
}

/** @returns minions a second */
async function bareLoop(dir: string, text: string, sync: boolean): Promise<number> {
  const names = Array.from({ length: MINIONS }, (_, i) => path.join(dir, `m-${i}`));
  const beganMs = performance.now();
  const work = async () => {
    for (let base = names.pop(); base !== undefined; base = names.pop()) {
      const next = path.join(base, 'rules.new');
      await mkdir(next, { recursive: true });
      const file = await open(path.join(next, 'pillar.json'), 'wx', 0o600);
      await file.writeFile(text);
      if (sync) await file.sync();
      await file.close();
      await rm(path.join(base, 'rules.archive'), { recursive: true, force: true });
      await rename(path.join(base, 'rules'), path.join(base, 'rules.archive')).catch(() => {});
      await rename(next, path.join(base, 'rules'));
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return MINIONS / ((performance.now() - beganMs) / 1000);
}
