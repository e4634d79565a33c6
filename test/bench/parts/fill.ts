import { randomUUID } from 'node:crypto';
import { minionEnv } from '@colonnade/contracts';
import { type EstateStore, type Mutation, openEstateStore, parsePlace } from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';

export const PILLARS_PER_MINION = 100;
const BATCH = 500;
/** As the plain values of a common estate are: short. */
const VALUE = fromPlain({ port: 8080, hosts: ['a.example', 'b.example'], text: 'x'.repeat(120) });

/** A store that is written to directly, past HTTP: a million pillars would take an hour otherwise. */
export function openFilled(place: string): Promise<EstateStore> {
  return openEstateStore(parsePlace(place));
}

/**
 * Gives a master's estate the pillars from one number to another, with the minions they belong to.
 * @param report told of every tenth of them: a store that is slow is not one that hangs
 */
export async function fillPillars(
  store: EstateStore,
  master: string,
  from: number,
  to: number,
  report: (text: string) => void = () => {},
): Promise<void> {
  const step = Math.max(BATCH, (to - from) / 10);
  let told = from + step;
  for (let minion = Math.ceil(from / PILLARS_PER_MINION); minion * PILLARS_PER_MINION < to; minion += BATCH) {
    const end = Math.min(minion + BATCH, Math.ceil(to / PILLARS_PER_MINION));
    const ids = Array.from({ length: end - minion }, (_, i) => filledMinion(minion + i));
    await write(
      store,
      ids.map((id) => putMinion(master, id)),
    );
  }
  for (let at = from; at < to; at += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, to - at) }, (_, i) => at + i);
    await write(
      store,
      numbers.map((n) => createPillar(master, n)),
    );
    if (at + BATCH < told) continue;
    told += step;
    report(`${Math.min(at + BATCH, to)} of ${to} pillars are written`);
  }
}

export function filledMinion(index: number): string {
  return `filled-${index}.example`;
}

async function write(store: EstateStore, mutations: readonly Mutation[]): Promise<void> {
  await store.write({ mutations, events: [], by: 'bench', atMs: Date.now() });
}

function putMinion(master: string, id: string): Mutation {
  return {
    kind: 'minion.put',
    expect: 'absent',
    record: { master, id, collections: [], registeredBy: 'bench' },
  };
}

function createPillar(master: string, n: number): Mutation {
  const tgtId = filledMinion(Math.floor(n / PILLARS_PER_MINION));
  const record = {
    ...({ pid: randomUUID(), tgtType: 'minion', tgtId, pillarenv: minionEnv(tgtId, master) } as const),
    ...{ name: `pillar_${n % PILLARS_PER_MINION}`, value: VALUE, isSecret: false },
  };
  return { kind: 'pillar.create', record };
}
