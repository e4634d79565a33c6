import { ColonnadeError } from '@colonnade/contracts';
import type { Clock } from '../port.ts';
import { checkFingerprint, checkShape, type PackedBatch, type PackedMutation } from '../rules/batch.ts';
import { refuseClosed } from '../rules/key-use.ts';
import type { Db } from './connection.ts';
import { deleteInventory, putInventory } from './inventories.ts';
import { keepTick } from './keep-tick.ts';
import { readClosedKids } from './key-use.ts';
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
import type { PackedResult } from './protocol.ts';
import { deleteService, putService } from './services.ts';
import type { Tx } from './transaction.ts';

/**
 * Applies one batch inside the open transaction: tick + 1, rows, versions, change keys, outbox rows, idempotency.
 * A throw leaves the savepoint to the caller to roll back. `nowMs` is the host's clock, for what expires.
 */
export function applyBatch(
  db: Db,
  batch: PackedBatch<string>,
  nowMs: number,
  changeTicksKept: number,
): PackedResult {
  const earlier = findReplay(db, batch, nowMs);
  if (earlier !== undefined) return earlier;
  checkShape(batch);
  if (batch.kids.length > 0) refuseClosed(batch.kids, readClosedKids(db));
  const { by, atMs } = batch;
  const clock = keepTick(db, batch, changeTicksKept, (tick, change) => {
    const tx: Tx = { db, tick, by, atMs, change };
    for (const mutation of batch.mutations) applyMutation(tx, mutation);
    keepAnswer(db, batch, tick, nowMs);
  });
  return { replayed: false, clock };
}

function findReplay(db: Db, { idempotency }: PackedBatch<string>, nowMs: number): PackedResult | undefined {
  if (idempotency === undefined) return undefined;
  const row = db.get<{ fingerprint: string; response: string; tick: number }>(
    'SELECT fingerprint, response, tick FROM idempotency WHERE scope = ? AND expires_at_ms > ?',
    ...[idempotency.scope, nowMs],
  );
  if (row === undefined) return undefined;
  checkFingerprint(row, idempotency);
  const clock = db.get<Clock>('SELECT incarnation, tick FROM meta');
  if (clock === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  return { replayed: true, clock: { ...clock }, response: row.response, tick: row.tick };
}

const APPLY: {
  [K in PackedMutation<string>['kind']]: (
    tx: Tx,
    mutation: Extract<PackedMutation<string>, { kind: K }>,
  ) => void;
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

export function applyMutation(tx: Tx, mutation: PackedMutation<string>): void {
  const apply = APPLY[mutation.kind] as (tx: Tx, mutation: PackedMutation<string>) => void;
  apply(tx, mutation);
}

function keepAnswer(db: Db, { idempotency }: PackedBatch<string>, tick: number, nowMs: number): void {
  db.run('DELETE FROM idempotency WHERE expires_at_ms <= ?', nowMs);
  if (idempotency === undefined) return;
  const { scope, fingerprint, response, expiresAtMs } = idempotency;
  db.run('INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)', scope, fingerprint, response, tick, expiresAtMs);
}
