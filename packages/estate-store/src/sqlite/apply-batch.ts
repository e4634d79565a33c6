import { ColonnadeError } from '@colonnade/contracts';
import type { ChangeKey, Clock } from '../port.ts';
import type { Db } from './connection.ts';
import { deleteCollection, putCollection } from './mutations-collection.ts';
import {
  deleteMaster,
  deleteMinion,
  deleteToken,
  putMaster,
  putMinion,
  putToken,
  requireAdmin,
} from './mutations-fleet.ts';
import { createPillar, deletePillar, purgeHistory, updatePillar } from './mutations-pillar.ts';
import type { PackedBatch, PackedMutation, PackedResult } from './protocol.ts';
import type { Tx } from './transaction.ts';

/**
 * Applies one batch inside the open transaction: tick + 1, rows, versions, change keys, outbox rows, idempotency.
 * A throw leaves the savepoint to the caller to roll back. `nowMs` is the host's clock, for what expires.
 */
export function applyBatch(db: Db, batch: PackedBatch, nowMs: number, changeTicksKept: number): PackedResult {
  const earlier = findReplay(db, batch, nowMs);
  if (earlier !== undefined) return earlier;
  checkShape(batch);
  const clock = db.get<Clock>('UPDATE meta SET tick = tick + 1 RETURNING incarnation, tick');
  if (clock === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  const { incarnation, tick } = clock;
  const changed = new Set<ChangeKey>();
  const tx: Tx = { db, tick, by: batch.by, atMs: batch.atMs, change: (key) => changed.add(key) };
  for (const mutation of batch.mutations) applyMutation(tx, mutation);
  for (const key of changed) db.run('INSERT INTO changes VALUES (?, ?)', tick, key);
  for (const [index, { type, subject, data }] of batch.events.entries()) {
    db.run('INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)', tick, index, batch.atMs, type, subject, data);
  }
  keepAnswer(db, batch, tick, nowMs);
  trimChanges(db, tick - changeTicksKept);
  return { replayed: false, clock: { incarnation, tick } };
}

function findReplay(db: Db, { idempotency }: PackedBatch, nowMs: number): PackedResult | undefined {
  if (idempotency === undefined) return undefined;
  const row = db.get<{ fingerprint: string; response: string; tick: number }>(
    'SELECT fingerprint, response, tick FROM idempotency WHERE scope = ? AND expires_at_ms > ?',
    ...[idempotency.scope, nowMs],
  );
  if (row === undefined) return undefined;
  if (row.fingerprint !== idempotency.fingerprint) {
    throw new ColonnadeError('idempotency_mismatch', 'the idempotency key was used for another request');
  }
  const clock = db.get<Clock>('SELECT incarnation, tick FROM meta');
  if (clock === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  return { replayed: true, clock: { ...clock }, response: row.response, tick: row.tick };
}

/** One record is changed at most once in a batch, so that (record, tick) names one state of it. */
function checkShape({ mutations, events }: PackedBatch): void {
  if (mutations.length === 0 && events.length === 0)
    throw new ColonnadeError('bad_request', 'the batch is empty');
  const seen = new Set<string>();
  for (const [index, mutation] of mutations.entries()) {
    const record = recordKey(mutation);
    if (seen.has(record)) {
      throw new ColonnadeError('bad_request', 'a record is changed twice in one batch', {
        field: `mutations.${index}`,
      });
    }
    seen.add(record);
  }
}

function recordKey(mutation: PackedMutation): string {
  const type = mutation.kind.slice(0, mutation.kind.indexOf('.'));
  if ('pid' in mutation) return `${type}:${mutation.pid}`;
  if (mutation.kind === 'pillar.create') return `${type}:${mutation.record.pid}`;
  const record = 'record' in mutation ? mutation.record : mutation;
  return 'master' in record ? `${type}:${record.master}/${record.id}` : `${type}:${record.id}`;
}

const APPLY: {
  [K in PackedMutation['kind']]: (tx: Tx, mutation: Extract<PackedMutation, { kind: K }>) => void;
} = {
  'pillar.create': createPillar,
  'pillar.update': updatePillar,
  'pillar.delete': deletePillar,
  'pillar.purgeHistory': purgeHistory,
  'collection.put': putCollection,
  'collection.delete': deleteCollection,
  'master.put': putMaster,
  'master.delete': deleteMaster,
  'minion.put': putMinion,
  'minion.delete': deleteMinion,
  'token.put': putToken,
  'token.delete': deleteToken,
  'token.requireAdmin': requireAdmin,
};

function applyMutation(tx: Tx, mutation: PackedMutation): void {
  const apply = APPLY[mutation.kind] as (tx: Tx, mutation: PackedMutation) => void;
  apply(tx, mutation);
}

function keepAnswer(db: Db, { idempotency }: PackedBatch, tick: number, nowMs: number): void {
  db.run('DELETE FROM idempotency WHERE expires_at_ms <= ?', nowMs);
  if (idempotency === undefined) return;
  const { scope, fingerprint, response, expiresAtMs } = idempotency;
  db.run('INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)', scope, fingerprint, response, tick, expiresAtMs);
}

/** Readers behind the floor are told `all`. */
function trimChanges(db: Db, floor: number): void {
  if (db.run('UPDATE meta SET changes_floor = ?1 WHERE changes_floor < ?1', floor) === 0) return;
  db.run('DELETE FROM changes WHERE tick <= ?', floor);
}
