import { ColonnadeError, type ResolvedTarget } from '@colonnade/contracts';
import { type Filter, Long } from 'mongodb';
import type { Mutation } from '../port.ts';
import type { VersionOp } from '../port-history.ts';
import type { PillarCreate, PillarUpdate } from '../rules/batch.ts';
import { checkExpect } from '../rules/expect.ts';
import {
  checkCollectionTarget,
  checkMinionTarget,
  checkPidUnused,
  neededTarget,
  twinExists,
} from '../rules/pillar-target.ts';
import { checkTaskTarget, checkTemplateTarget } from '../rules/task.ts';
import { fromPillar, minionKey, type PillarDocument, toNumber, type VersionDocument } from './documents.ts';
import { brokenKey } from './errors.ts';
import { INDEX, NO_KID } from './schema.ts';
import { type StoredValue, unsetBeside } from './stored-value.ts';
import { flush, type Tx } from './transaction.ts';

/** @throws ColonnadeError conflict (pid used before) | already_exists | not_found | unknown_minion | bad_request */
export async function createPillar(tx: Tx, { record }: PillarCreate<StoredValue>): Promise<void> {
  checkPidUnused(await hasVersions(tx, record.pid));
  await checkTarget(tx, record);
  const document = await insertPillar(tx, record, { by: tx.by, atMs: tx.atMs });
  keepVersion(tx, document, 'create');
}

/**
 * `made`: who made it, and when; a pillar that comes back keeps it.
 * @throws ColonnadeError already_exists | conflict (pid used before)
 */
export async function insertPillar(
  { tables, within, by, atMs, tick }: Tx,
  record: PillarCreate<StoredValue>['record'],
  made: { by: string; atMs: number },
): Promise<PillarDocument> {
  const written = { createdBy: made.by, updatedBy: by, createdAtMs: made.atMs, updatedAtMs: atMs, tick };
  const document = fromPillar({ ...record, ...written }, record.value);
  await refuseTwins(() => tables.pillars.insertOne(document, within));
  return document;
}

/** The unique indexes see what a look before the write could only guess. */
export async function refuseTwins<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    const key = brokenKey(thrown);
    if (key === undefined) throw thrown;
    checkPidUnused(key[0] === 'pid');
    throw twinExists();
  }
}

/** @throws ColonnadeError not_found | precondition_failed */
export async function updatePillar(tx: Tx, mutation: PillarUpdate<StoredValue>): Promise<void> {
  const { pid, expectTick, value, isSecret } = mutation;
  const set = { ...value, is_secret: isSecret, ...writtenBy(tx) };
  const change = { $set: set, $unset: unsetBeside(value) } as object;
  const options = { ...tx.within, returnDocument: 'before' } as const;
  const before = expected(await tx.tables.pillars.findOneAndUpdate({ pid }, change, options), expectTick);
  if (isSecret && !before.is_secret) await purgeVersions(tx, { pid, is_secret: false });
  const {
    value: _value,
    value_json: _text,
    kid: _kid,
    ...rest
  } = before as PillarDocument & Record<string, unknown>;
  keepVersion(tx, { ...rest, ...set } as PillarDocument, 'update');
}

/** @throws ColonnadeError not_found | precondition_failed */
export async function deletePillar(
  tx: Tx,
  { pid, expectTick }: Extract<Mutation, { kind: 'pillar.delete' }>,
): Promise<void> {
  const document = expected(await tx.tables.pillars.findOneAndDelete({ pid }, tx.within), expectTick);
  keepVersion(tx, { ...document, ...writtenBy(tx) }, 'delete');
}

/** Looks after the change, not before it: a refusal undoes it with the whole transaction. */
export function expected(found: PillarDocument | null, expectTick: number | undefined): PillarDocument {
  checkExpect('pillar', found === null ? undefined : { tick: toNumber(found.tick) }, expectTick);
  return found as PillarDocument;
}

/** @throws ColonnadeError not_found when there never was such a pillar */
export async function purgeHistory(
  tx: Tx,
  { pid }: Extract<Mutation, { kind: 'pillar.purgeHistory' }>,
): Promise<void> {
  if (!(await hasVersions(tx, pid))) throw new ColonnadeError('not_found', 'no such pillar');
  const pillar = await tx.tables.pillars.findOne({ pid }, tx.within);
  await purgeVersions(tx, pillar === null ? { pid } : { pid, tick: { $ne: pillar.tick } });
}

/** Takes the values out of the documents; where the server keeps older copies of them is not ours to say. */
export async function purgeVersions(tx: Tx, which: Filter<VersionDocument>): Promise<void> {
  await flush(tx);
  const purged = { $set: { value: null, purged: true, kid: NO_KID }, $unset: { value_json: true } } as object;
  await tx.tables.versions.updateMany(which, purged, { ...tx.within, hint: INDEX.version });
}

export function writtenBy({ by, atMs, tick }: Tx) {
  return { updated_by: by, updated_at: new Date(atMs), tick: Long.fromNumber(tick) };
}

/** Every change leaves the full document as it was right after it (a delete: the last contents, and who deleted). */
export function keepVersion(tx: Tx, document: PillarDocument, op: VersionOp): void {
  const { _id, ...rest } = document;
  // Without its `_id`, the driver makes a new one for the version.
  tx.appended.versions.push({ ...rest, op, purged: false } as never);
  tx.change(`scope:${document.pillarenv}`);
}

/** Versions remember the pids that are gone. */
async function hasVersions({ tables, within, appended }: Tx, pid: string): Promise<boolean> {
  if (appended.versions.some((version) => version.pid === pid)) return true;
  return (await tables.versions.findOne({ pid }, within)) !== null;
}

/**
 * @param options `newSince`: the tick of an import, which may give pillars to tasks that it brings and that have ended
 * @throws ColonnadeError not_found | unknown_minion | conflict | bad_request: what a new pillar hangs on is not there
 */
export async function checkTarget(
  { tables, within }: Pick<Tx, 'tables' | 'within'>,
  record: ResolvedTarget,
  { newSince }: { newSince?: number } = {},
): Promise<void> {
  const target = neededTarget(record);
  if (target?.kind === 'collection') {
    const found = await tables.collections.findOne({ _id: target.id }, within);
    checkCollectionTarget(record, found ?? undefined);
  }
  if (target?.kind === 'minion') {
    const found = await tables.minions.findOne({ _id: minionKey(target.master, target.id) }, within);
    checkMinionTarget(found !== null);
  }
  if (target?.kind === 'task') {
    const found = await tables.tasks.findOne({ _id: target.id }, within);
    checkTaskTarget(record, found ? { ...found, isNew: toNumber(found.tick) === newSince } : undefined);
  }
  if (target?.kind === 'task_tpl') {
    checkTemplateTarget(record, (await tables.templates.findOne({ _id: target.id }, within)) !== null);
  }
}
