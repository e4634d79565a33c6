import { parseEnv } from '@colonnade/contracts';
import { valuesEqual } from '@colonnade/value';
import type { PillarRecord } from '../../port.ts';
import { kidOf } from '../../rules/key-use.ts';
import type { Connection, Tables } from '../connection.ts';
import { minionKey, toPillar } from '../documents.ts';
import { readClosedKids } from '../key-use.ts';
import { shortHash } from './fields.ts';
import type { Misfit } from './judge.ts';

/** What pillars hang on, and an estate does not have yet. */
export type MissingTargets = {
  masters: Set<string>;
  /** As `master/id`. */
  minions: Set<string>;
  /** By id, with the owner that their pillarenv names. */
  collections: Map<string, string>;
};

/** What becomes of a record in this estate: what is wrong with it, or that an earlier adoption has made it. */
export type Meeting = { misfits: readonly Misfit[]; isAdopted: boolean };

/** Looks at the chunks of one collection, one after the other, beside the estate. */
export type Meet = (records: readonly PillarRecord[]) => Promise<Meeting[]>;

/**
 * Compares records that fit by themselves with the estate and with each other: what they hang on, and what they would
 * collide with. What is missing for those that fit is added to `missing`.
 */
export function createMeet(connection: Connection, inPlace: boolean, missing: MissingTargets): Meet {
  const isTwin = createTwins();
  return async (records) => {
    const { tables } = connection;
    const owners = await readOwners(tables, records);
    const fleet = await readFleet(tables, records);
    const closed = await readClosedKids(tables, connection.limit);
    const { taken, adopted } = await findTaken(tables, records, inPlace);
    return records.map((record) => {
      if (adopted.has(record)) return { misfits: [], isAdopted: true };
      const kid = kidOf(record.value);
      const misfits: Misfit[] = [
        ...(taken.has(record) ? (['taken'] as const) : []),
        ...(kid !== undefined && closed.includes(kid) ? (['kid_closed'] as const) : []),
        ...(hasOtherOwner(record, owners, missing) ? (['owner'] as const) : []),
      ];
      if (misfits.length === 0 && isTwin(record)) misfits.push('twice');
      if (misfits.length === 0) noteMissing(record, owners, fleet, missing);
      return { misfits, isAdopted: false };
    });
  };
}

function hasOtherOwner(
  { tgtType, pillarenv }: PillarRecord,
  owners: ReadonlyMap<string, string>,
  missing: MissingTargets,
): boolean {
  const env = parseEnv(pillarenv);
  if (env.kind !== 'collection' || tgtType !== 'collection') return false;
  const owner = owners.get(env.collectionId) ?? missing.collections.get(env.collectionId);
  return owner !== undefined && owner !== env.userSub;
}

function noteMissing(
  { tgtType, pillarenv }: PillarRecord,
  owners: ReadonlyMap<string, string>,
  fleet: { masters: ReadonlySet<string>; minions: ReadonlySet<string> },
  missing: MissingTargets,
): void {
  const env = parseEnv(pillarenv);
  if (env.kind === 'collection' && tgtType === 'collection' && !owners.has(env.collectionId)) {
    missing.collections.set(env.collectionId, env.userSub ?? '');
  }
  if (env.kind === 'minion' && tgtType === 'minion') {
    if (!fleet.masters.has(env.master)) missing.masters.add(env.master);
    const key = minionKey(env.master, env.minionId);
    if (!fleet.minions.has(key)) missing.minions.add(key);
  }
}

/** Tells of each record whether one before it has its pid or its key. Where there is no unique index yet, both may stand there. */
function createTwins(): (record: PillarRecord) => boolean {
  const [pids, keys] = [new Set<string>(), new Set<string>()];
  return ({ pid, tgtType, tgtId, name, pillarenv }) => {
    const key = shortHash(JSON.stringify([tgtType, tgtId, name, pillarenv]));
    if (pids.has(pid) || keys.has(key)) return true;
    pids.add(pid);
    keys.add(key);
    return false;
  };
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

/**
 * Records that the estate has under the same pid or the same key; of those, the ones that an earlier adoption, cut short
 * perhaps, has made of the very same document.
 */
async function findTaken(tables: Tables, records: readonly PillarRecord[], inPlace: boolean) {
  const [taken, adopted] = [new Set<PillarRecord>(), new Set<PillarRecord>()];
  const wanted = { pid: { $in: records.map(({ pid }) => pid) } };
  const used = await tables.versions.find(wanted, { projection: { pid: 1 } }).toArray();
  const pids = new Set(used.map(({ pid }) => pid));
  for (const record of records) {
    const { tgtType: tgt_type, tgtId: tgt_id, name, pillarenv } = record;
    // In place it would find itself.
    const twin = inPlace ? null : await tables.pillars.findOne({ tgt_type, tgt_id, name, pillarenv });
    if (twin !== null && isSame(toPillar(twin), record)) adopted.add(record);
    else if (twin !== null || pids.has(record.pid)) taken.add(record);
  }
  return { taken, adopted };
}

function isSame(pillar: PillarRecord, record: PillarRecord): boolean {
  const { pid, isSecret, value } = record;
  return pillar.pid === pid && pillar.isSecret === isSecret && valuesEqual(pillar.value, value);
}
