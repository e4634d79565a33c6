import { ColonnadeError } from '@colonnade/contracts';
import type { ChangeKey, Clock } from '../port.ts';
import type { PackedBatch } from '../rules/batch.ts';
import type { Db } from './connection.ts';

/**
 * What every write leaves behind, inside the open transaction: tick + 1, then what `run` does, the keys it says it
 * changed, the outbox rows.
 */
export function keepTick(
  db: Db,
  { atMs, events }: Pick<PackedBatch<unknown>, 'atMs' | 'events'>,
  changeTicksKept: number,
  run: (tick: number, change: (key: ChangeKey) => void) => void,
): Clock {
  const clock = db.get<Clock>('UPDATE meta SET tick = tick + 1 RETURNING incarnation, tick');
  if (clock === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  const { incarnation, tick } = clock;
  const changed = new Set<ChangeKey>();
  run(tick, (key) => changed.add(key));
  for (const key of changed) db.run('INSERT INTO changes VALUES (?, ?)', tick, key);
  for (const [index, { type, subject, data }] of events.entries()) {
    db.run('INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)', tick, index, atMs, type, subject, data);
  }
  trimChanges(db, tick - changeTicksKept);
  return { incarnation, tick };
}

/** Readers behind the floor are told `all`. */
function trimChanges(db: Db, floor: number): void {
  if (db.run('UPDATE meta SET changes_floor = ?1 WHERE changes_floor < ?1', floor) === 0) return;
  db.run('DELETE FROM changes WHERE tick <= ?', floor);
}
