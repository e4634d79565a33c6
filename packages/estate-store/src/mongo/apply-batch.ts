import { Long, ObjectId } from 'mongodb';
import type { ChangeKey, Clock, WriteResult } from '../port.ts';
import { checkFingerprint, checkShape, type PackedBatch, type PackedMutation } from '../rules/batch.ts';
import { MAX_CHANGED } from '../rules/clock.ts';
import { refuseClosed } from '../rules/key-use.ts';
import { readText, toNumber } from './documents.ts';
import { deleteInventory, putInventory } from './inventories.ts';
import { deleteCollection, putCollection, setRule } from './mutations-collection.ts';
import {
  deleteMaster,
  deleteMinion,
  deleteToken,
  putMaster,
  putMinion,
  putToken,
  requireAdmin,
  setRuled,
} from './mutations-fleet.ts';
import { movePillar, purgePillar, requireUnchanged, restorePillar } from './mutations-history.ts';
import { createPillar, deletePillar, purgeHistory, updatePillar } from './mutations-pillar.ts';
import {
  copyTask,
  createTask,
  deleteTask,
  deleteTemplate,
  putTemplate,
  setTaskState,
} from './mutations-task.ts';
import { deleteService, putService } from './services.ts';
import type { StoredValue } from './stored-value.ts';
import { type Group, keepChanges, type Tx } from './transaction.ts';

/**
 * Applies one batch inside the open transaction: tick + 1, rows, versions, change keys, outbox rows, idempotency.
 * A throw leaves the transaction to the caller to abort. `nowMs` is the host's clock, for what expires.
 */
export async function applyBatch(
  group: Group,
  batch: PackedBatch<StoredValue>,
  nowMs: number,
): Promise<WriteResult> {
  const earlier = await findReplay(group, batch, nowMs);
  if (earlier !== undefined) return earlier;
  checkShape(batch);
  refuseClosed(batch.kids, group.clock.closedKids);
  const clock = await keepTick(group, batch, async (tx) => {
    for (const mutation of batch.mutations) await applyMutation(tx, mutation);
  });
  await keepAnswer(group, batch);
  return { replayed: false, clock };
}

/** What every write leaves behind: tick + 1, then what `run` does, the keys it says it changed, the outbox rows. */
export async function keepTick(
  group: Group,
  { by, atMs, events }: Pick<PackedBatch<StoredValue>, 'by' | 'atMs' | 'events'>,
  run: (tx: Tx) => Promise<void>,
): Promise<Clock> {
  group.tick += 1;
  const { tables, within, appended, tick } = group;
  const changed = new Set<ChangeKey>();
  const { changesFloor } = group.clock;
  await run({ tables, within, appended, tick, by, atMs, changesFloor, change: (key) => changed.add(key) });
  // So many keys are told as `all`, and might not fit one document.
  if (changed.size > MAX_CHANGED) group.clock = { ...group.clock, changesFloor: tick };
  else if (changed.size > 0) keepChanges(group, changed);
  for (const [index, event] of events.entries()) {
    const place = { _id: new ObjectId(), tick: Long.fromNumber(tick), index, time: new Date(atMs) };
    appended.outbox.push({ ...place, ...event });
  }
  return { incarnation: group.clock.incarnation, tick };
}

async function findReplay(
  { tables, within, clock, tick }: Group,
  { idempotency }: PackedBatch<StoredValue>,
  nowMs: number,
): Promise<WriteResult | undefined> {
  if (idempotency === undefined) return undefined;
  const kept = await tables.answers.findOne({ _id: idempotency.scope }, within);
  if (kept === null || kept.expires_at.getTime() <= nowMs) return undefined;
  checkFingerprint(kept, idempotency);
  return {
    replayed: true,
    clock: { incarnation: clock.incarnation, tick },
    response: readText(kept.response),
    tick: toNumber(kept.tick),
  };
}

/** What has expired is removed by the server, a while later; until then it is overwritten. */
async function keepAnswer({ tables, within, tick }: Group, { idempotency }: PackedBatch<StoredValue>) {
  if (idempotency === undefined) return;
  const { scope, fingerprint, response, expiresAtMs } = idempotency;
  const answer = { fingerprint, response, tick: Long.fromNumber(tick), expires_at: new Date(expiresAtMs) };
  await tables.answers.replaceOne({ _id: scope }, answer, { ...within, upsert: true });
}

const APPLY: {
  [K in PackedMutation<StoredValue>['kind']]: (
    tx: Tx,
    mutation: Extract<PackedMutation<StoredValue>, { kind: K }>,
  ) => Promise<void>;
} = {
  'pillar.create': createPillar,
  'pillar.update': updatePillar,
  'pillar.delete': deletePillar,
  'pillar.purgeHistory': purgeHistory,
  'pillar.move': movePillar,
  'pillar.restore': restorePillar,
  'pillar.purge': purgePillar,
  'scope.requireUnchanged': requireUnchanged,
  'collection.put': putCollection,
  'collection.rule': setRule,
  'collection.delete': deleteCollection,
  'master.put': putMaster,
  'master.delete': deleteMaster,
  'minion.put': putMinion,
  'minion.ruled': setRuled,
  'minion.delete': deleteMinion,
  'token.put': putToken,
  'token.delete': deleteToken,
  'token.requireAdmin': requireAdmin,
  'template.put': putTemplate,
  'template.delete': deleteTemplate,
  'task.create': createTask,
  'task.copy': copyTask,
  'task.setState': setTaskState,
  'task.delete': deleteTask,
  'inventory.put': putInventory,
  'inventory.delete': deleteInventory,
  'service.put': putService,
  'service.delete': deleteService,
};

export async function applyMutation(tx: Tx, mutation: PackedMutation<StoredValue>): Promise<void> {
  const apply = APPLY[mutation.kind] as (tx: Tx, mutation: PackedMutation<StoredValue>) => Promise<void>;
  await apply(tx, mutation);
}
