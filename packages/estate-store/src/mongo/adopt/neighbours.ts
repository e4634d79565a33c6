import { parseEnv } from '@colonnade/contracts';
import type { PillarRecord } from '../../port.ts';
import type { Connection, Tables } from '../connection.ts';
import { minionKey } from '../documents.ts';
import type { Misfit } from './judge.ts';

/** What pillars hang on, and an estate does not have yet. */
export type MissingTargets = {
  masters: Set<string>;
  /** As `master/id`. */
  minions: Set<string>;
  /** By id, with the owner that their pillarenv names. */
  collections: Map<string, string>;
};

/**
 * Compares records that fit by themselves with the estate: what they hang on, and what they would collide with.
 * @returns the misfits of each record, in their order; what is missing is added to `missing`
 */
export async function meetEstate(
  connection: Connection,
  records: readonly PillarRecord[],
  inPlace: boolean,
  missing: MissingTargets,
): Promise<Misfit[][]> {
  const owners = await readOwners(connection.tables, records);
  const fleet = await readFleet(connection.tables, records);
  const taken = inPlace ? new Set<PillarRecord>() : await findTaken(connection.tables, records);
  return records.map((record) => {
    const misfits: Misfit[] = taken.has(record) ? ['taken'] : [];
    const env = parseEnv(record.pillarenv);
    if (env.kind === 'collection' && record.tgtType === 'collection') {
      const owner = owners.get(env.collectionId) ?? missing.collections.get(env.collectionId) ?? env.userSub;
      if (owner !== env.userSub) misfits.push('owner');
      else if (!owners.has(env.collectionId)) missing.collections.set(env.collectionId, owner ?? '');
    }
    if (env.kind === 'minion' && record.tgtType === 'minion') {
      if (!fleet.masters.has(env.master)) missing.masters.add(env.master);
      const key = minionKey(env.master, env.minionId);
      if (!fleet.minions.has(key)) missing.minions.add(key);
    }
    return misfits;
  });
}

async function readOwners(tables: Tables, records: readonly PillarRecord[]): Promise<Map<string, string>> {
  const ids = records.filter(({ tgtType }) => tgtType === 'collection').map(({ tgtId }) => tgtId);
  const found = tables.collections.find({ _id: { $in: ids } });
  return new Map((await found.toArray()).map(({ _id, owner }) => [_id, owner]));
}

async function readFleet(tables: Tables, records: readonly PillarRecord[]) {
  const envs = records.map(({ pillarenv }) => parseEnv(pillarenv)).filter((env) => env.kind === 'minion');
  const options = { projection: { _id: 1 } } as const;
  const masters = tables.masters.find({ _id: { $in: envs.map(({ master }) => master) } }, options);
  const keys = envs.map(({ master, minionId }) => minionKey(master, minionId));
  const minions = tables.minions.find({ _id: { $in: keys } }, options);
  return {
    masters: new Set((await masters.toArray()).map(({ _id }) => _id)),
    minions: new Set((await minions.toArray()).map(({ _id }) => _id)),
  };
}

/** Records that the estate has under the same pid or the same key. */
async function findTaken(tables: Tables, records: readonly PillarRecord[]): Promise<Set<PillarRecord>> {
  const taken = new Set<PillarRecord>();
  const wanted = { pid: { $in: records.map(({ pid }) => pid) } };
  const used = await tables.versions.find(wanted, { projection: { pid: 1 } }).toArray();
  const pids = new Set(used.map(({ pid }) => pid));
  for (const record of records) {
    const { tgtType: tgt_type, tgtId: tgt_id, name, pillarenv } = record;
    const twin = await tables.pillars.findOne({ tgt_type, tgt_id, name, pillarenv });
    if (twin !== null || pids.has(record.pid)) taken.add(record);
  }
  return taken;
}
