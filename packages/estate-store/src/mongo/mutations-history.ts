import { Long } from 'mongodb';
import type { Mutation } from '../port.ts';
import type { VersionOp } from '../port-history.ts';
import type { PillarMove, PillarRestore } from '../rules/batch.ts';
import { checkExpect, checkUnchanged } from '../rules/expect.ts';
import { masterOf } from '../rules/pillar-target.ts';
import { type PillarDocument, toNumber, type VersionDocument } from './documents.ts';
import {
  checkTarget,
  expected,
  insertPillar,
  keepVersion,
  purgeVersions,
  refuseTwins,
  writtenBy,
} from './mutations-pillar.ts';
import { INDEX } from './schema.ts';
import { type StoredValue, unsetBeside } from './stored-value.ts';
import { flush, type Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError not_found | precondition_failed | already_exists | unknown_minion | conflict | bad_request */
export async function movePillar(
  tx: Tx,
  { pid, expectTick, place, value }: PillarMove<StoredValue>,
): Promise<void> {
  const before = expected(await tx.tables.pillars.findOne({ pid }, tx.within), expectTick);
  await replacePillar(tx, before, { pid, ...place, value, isSecret: before.is_secret }, 'move');
}

/** @throws ColonnadeError not_found | precondition_failed | already_exists | unknown_minion | conflict | bad_request */
export async function restorePillar(
  tx: Tx,
  { record, expectTick }: PillarRestore<StoredValue>,
): Promise<void> {
  const { pid } = record;
  const before = await tx.tables.pillars.findOne({ pid }, tx.within);
  if (before !== null) return await replacePillar(tx, expected(before, expectTick), record, 'restore');
  const last = await findLast(tx, pid);
  checkExpect('pillar', last === null ? undefined : { tick: toNumber(last.tick) }, expectTick);
  await checkTarget(tx, record);
  const made = { by: last?.created_by ?? tx.by, atMs: last?.created_at.getTime() ?? tx.atMs };
  keepVersion(tx, await insertPillar(tx, record, made), 'restore');
}

/** @throws ColonnadeError not_found when there never was such a pillar, or it was purged before | precondition_failed */
export async function purgePillar(tx: Tx, { pid, expectTick }: Of<'pillar.purge'>): Promise<void> {
  const last = await findLast(tx, pid);
  checkExpect('pillar', last === null ? undefined : { tick: toNumber(last.tick) }, expectTick);
  const pillar = await tx.tables.pillars.findOneAndDelete({ pid }, tx.within);
  if (pillar !== null) tx.change(`scope:${pillar.pillarenv}`);
  await tx.tables.versions.deleteMany({ pid }, { ...tx.within, hint: INDEX.version });
}

/** @throws ColonnadeError precondition_failed */
export async function requireUnchanged(
  tx: Tx,
  { pillarenv, since }: Of<'scope.requireUnchanged'>,
): Promise<void> {
  const isKnown = since >= tx.changesFloor && since < tx.tick;
  // What the batches before this one in its transaction changed is looked for too.
  await flush(tx);
  const after = { tick: { $gt: Long.fromNumber(since) }, keys: `scope:${pillarenv}` };
  const changed = await tx.tables.changes.findOne(after, { ...tx.within, hint: INDEX.change });
  checkUnchanged(isKnown && changed === null);
}

async function findLast(tx: Tx, pid: string): Promise<VersionDocument | null> {
  await flush(tx);
  return await tx.tables.versions.findOne({ pid }, { ...tx.within, sort: { tick: -1 }, hint: INDEX.version });
}

/** A plain pillar that becomes a secret loses its plain history here too. */
async function replacePillar(
  tx: Tx,
  before: PillarDocument,
  record: PillarRestore<StoredValue>['record'],
  op: VersionOp,
): Promise<void> {
  const { pid, tgtType, tgtId, name, pillarenv, value, isSecret } = record;
  await checkTarget(tx, record);
  const master = masterOf(tgtType, tgtId, pillarenv);
  const place = { tgt_type: tgtType, tgt_id: tgtId, name, pillarenv };
  const set = {
    ...{ ...place, ...value, is_secret: isSecret, ...writtenBy(tx) },
    ...(master === undefined ? {} : { of_master: master }),
  };
  const unset = { ...unsetBeside(value), ...(master === undefined ? { of_master: true } : {}) };
  const change = { $set: set, $unset: unset } as object;
  await refuseTwins(() =>
    tx.tables.pillars.updateOne({ pid }, change, { ...tx.within, hint: INDEX.pillarPid }),
  );
  if (isSecret && !before.is_secret) await purgeVersions(tx, { pid, is_secret: false });
  const rest = Object.entries(before).filter(
    ([field]) => !['value', 'value_json', 'kid', 'of_master'].includes(field),
  );
  keepVersion(tx, { ...Object.fromEntries(rest), ...set } as PillarDocument, op);
  tx.change(`scope:${before.pillarenv}`);
}
