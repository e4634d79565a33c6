import { randomUUID } from 'node:crypto';
import type { Bus } from '@colonnade/bus';
import { kmsSeal, type ResolvedTarget, startCall } from '@colonnade/contracts';
import type { EstateStore, MasterRecord, Mutation } from '@colonnade/estate-store';
import { fromPlain, type Value } from '@colonnade/value';

export const call = (budgetMs = 5000) => startCall(budgetMs);

export type MasterFields = Omit<MasterRecord, 'tick'>;

/** What pillar-api does to the estate, in short; each returns the tick, or the pid of what it made. */
export type EstateWriter = {
  write(...mutations: readonly Mutation[]): Promise<number>;
  putMaster(master: MasterFields): Promise<number>;
  addMinion(master: string, id: string, collections?: readonly string[]): Promise<number>;
  addCollection(id: string, parentId?: string, owner?: string): Promise<number>;
  addPillar(target: ResolvedTarget, name: string, value: unknown): Promise<string>;
  /** Sealed by crypto-kms. */
  addSecret(target: ResolvedTarget, name: string, value: unknown): Promise<string>;
};

/** @param api the bus as pillar-api sees it */
export function createEstateWriter(store: EstateStore, api: Bus): EstateWriter {
  const write = async (...mutations: readonly Mutation[]): Promise<number> => {
    const { clock } = await store.write({ mutations, events: [], by: 'test', atMs: Date.now() });
    return clock.tick;
  };
  const putPillar = async (target: ResolvedTarget, name: string, value: Value, isSecret: boolean) => {
    const pid = randomUUID();
    await write({ kind: 'pillar.create', record: { pid, ...target, name, value, isSecret } });
    return pid;
  };
  return {
    write,
    putMaster: (record) => write({ kind: 'master.put', expect: undefined, record }),
    addMinion: (master, id, collections = []) => {
      const record = { master, id, collections, registeredBy: 'test' };
      return write({ kind: 'minion.put', expect: 'absent', record });
    },
    addCollection: (id, parentId, owner = 'ann') =>
      write({ kind: 'collection.put', expect: 'absent', record: { id, name: id, parentId, owner } }),
    addPillar: (target, name, value) => putPillar(target, name, fromPlain(value), false),
    addSecret: async (target, name, value) =>
      putPillar(target, name, await seal(api, target, name, fromPlain(value)), true),
  };
}

async function seal(api: Bus, target: ResolvedTarget, name: string, value: Value): Promise<Value> {
  const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = target;
  const context = { tgt_type, tgt_id, pillarenv, name };
  const [item] = (await api.request(kmsSeal, { items: [{ context, value }] }, call())).items;
  if (item?.ok !== true) throw new Error('not sealed');
  return fromPlain(item.result);
}
