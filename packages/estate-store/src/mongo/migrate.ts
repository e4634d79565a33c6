import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import { Long } from 'mongodb';
import { INCARNATION_JUMP } from '../rules/clock.ts';
import { checkNotNewer } from './clock.ts';
import type { ClockDocument, Connection } from './connection.ts';
import { acquireMigrationLock } from './migration-lock.ts';
import { INDEX, MIGRATIONS, SCHEMA_VERSION } from './schema.ts';
import type { Group } from './transaction.ts';

const LOOK_AGAIN_MS = 100;

/** Whether a database with pillars, but without an estate, may become one: only adopting them does that. */
export type MigrateOptions = { overForeignPillars: boolean };

/**
 * Brings the database to this program's schema, under a lock, so that of several processes one does it and the others
 * wait for it. Every step may be run again after it was cut short.
 * @throws ColonnadeError `misconfigured` for a newer schema, pillars of another program or a copy that is not whole
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<void> {
  while ((await readSchemaVersion(connection, options)) < SCHEMA_VERSION) {
    await using lock = await acquireMigrationLock(connection);
    if (lock === undefined) await delay(LOOK_AGAIN_MS);
    else await runMigrations(connection, options);
  }
}

async function runMigrations(connection: Connection, options: MigrateOptions): Promise<void> {
  const from = await readSchemaVersion(connection, options);
  for (const [index, step] of MIGRATIONS.entries()) {
    if (index >= from) await step(connection.db);
  }
  const zero = Long.fromNumber(0);
  const first = { incarnation: randomUUID(), tick: zero, changes_floor: zero };
  await connection.tables.meta.updateOne(
    { _id: 'clock' },
    { $set: { schema_version: SCHEMA_VERSION }, $setOnInsert: first },
    { upsert: true, ...connection.limit },
  );
}

/** 0 for a database without an estate. @throws ColonnadeError `misconfigured` */
async function readSchemaVersion(connection: Connection, options: MigrateOptions): Promise<number> {
  const { meta, pillars } = connection.tables;
  const found = await meta.find({}, { hint: INDEX.id, ...connection.limit }).toArray();
  if (found.some(({ _id }) => _id === 'copy')) {
    throw new ColonnadeError('misconfigured', 'a copy into this database has not been finished: copy again');
  }
  const clock = found.find(({ _id }) => _id === 'clock') as ClockDocument | undefined;
  if (clock !== undefined) {
    checkNotNewer(clock.schema_version);
    return clock.schema_version;
  }
  const foreign = options.overForeignPillars
    ? null
    : await pillars.findOne({}, { hint: INDEX.id, ...connection.limit });
  if (foreign === null) return 0;
  throw new ColonnadeError(
    'misconfigured',
    'the database holds pillars of another program: adopt them first',
  );
}

/** Nothing cached before a restore may be used after it, and no lease of that time is held any longer. */
export async function renewIncarnation({ tables, within, clock }: Group): Promise<void> {
  const tick = Long.fromNumber(clock.tick + INCARNATION_JUMP);
  const renewed = { incarnation: randomUUID(), tick, changes_floor: tick };
  await tables.changes.deleteMany({ tick: { $lte: tick } }, within);
  await tables.leases.updateMany({}, { $set: { expires_at: new Date(0) } }, { ...within, hint: INDEX.id });
  await tables.meta.updateOne({ _id: 'clock' }, { $set: renewed }, within);
}
