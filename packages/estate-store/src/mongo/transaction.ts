import { ColonnadeError } from '@colonnade/contracts';
import { type ClientSession, Long, ObjectId, type TransactionOptions } from 'mongodb';
import type { ChangeKey } from '../port.ts';
import { type ReadClock, readClock } from './clock.ts';
import type { Connection, Tables } from './connection.ts';
import type { ChangeDocument, OutboxDocument, VersionDocument } from './documents.ts';
import { isCommitUnknown, isWorthRetrying } from './errors.ts';
import { WRITE_CONCERN } from './options.ts';
import { pauseBefore } from './retry.ts';

/** One transaction, which one or more batches share. */
export type Group = {
  tables: Tables;
  /** For every operation in it. */
  within: { session: ClientSession; maxTimeMS: number };
  /** As it was when the transaction began. */
  clock: ReadClock;
  /** The last tick given out; it is the clock's when nothing was written. */
  tick: number;
  /** Written at the end of the transaction in one go. */
  appended: { versions: VersionDocument[]; outbox: OutboxDocument[]; changes: ChangeDocument[] };
};

/** What a mutation gets: the open transaction and what is the same for the whole batch. */
export type Tx = Pick<Group, 'tables' | 'within' | 'appended'> & {
  /** Changes at or before it are forgotten. */
  changesFloor: number;
  /** The tick this batch makes. */
  tick: number;
  by: string;
  atMs: number;
  /** Files the change, so that readers drop exactly what they cached under this key. */
  change(key: ChangeKey): void;
};

export const TRANSACTION: TransactionOptions = {
  readConcern: { level: 'snapshot' },
  writeConcern: WRITE_CONCERN,
  readPreference: 'primary',
  maxCommitTimeMS: WRITE_CONCERN.wtimeoutMS,
};

/** Every how many ticks forgotten changes are removed. */
const TRIM_EVERY = 256;

/**
 * Runs one attempt at a transaction and commits it. The clock is read first and written last: whoever else wrote in
 * between makes it fail, so transactions follow each other as the ticks do, and the one document all of them write is
 * held for the shortest time.
 * @param options `claim`: the clock is written first too, so that it is the others who wait
 * @throws what the driver or `run` throws; nothing is written then. ColonnadeError `unavailable` when it is not known
 */
export async function runTransaction<T>(
  connection: Connection,
  session: ClientSession,
  options: { changeTicksKept: number; deadlineMs: number; claim?: boolean },
  run: (group: Group) => Promise<T>,
): Promise<T> {
  session.startTransaction(TRANSACTION);
  try {
    const group = await openGroup(connection, session);
    if (options.claim === true) await claimClock(group);
    const result = await run(group);
    await flush(group);
    await advanceClock(group, options.changeTicksKept);
    await commit(session, options.deadlineMs);
    return result;
  } finally {
    // The driver knows whether there is something left to abort; that it cannot be reached changes nothing.
    if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
  }
}

/** From now on it is other writers whose transactions fail and begin again. */
async function claimClock({ tables, within, clock }: Group): Promise<void> {
  const next = { $set: { tick: Long.fromNumber(clock.tick + 1) } };
  await tables.meta.updateOne({ _id: 'clock' }, next, within);
}

/**
 * Reads in one moment of the estate; the commit proves that what was read is there to stay. Until the deadline it is begun
 * anew when it only came at the wrong moment.
 */
export async function readTransaction<T>(
  connection: Connection,
  deadlineMs: number,
  run: (group: Group) => Promise<T>,
): Promise<T> {
  const session = connection.client.startSession();
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        return await runTransaction(connection, session, { changeTicksKept: 0, deadlineMs }, run);
      } catch (thrown) {
        if (!isWorthRetrying(thrown) || !(await pauseBefore(attempt, deadlineMs))) throw thrown;
      }
    }
  } finally {
    await session.endSession();
  }
}

async function openGroup(connection: Connection, session: ClientSession): Promise<Group> {
  const clock = await readClock(connection, session);
  const appended = { versions: [], outbox: [], changes: [] };
  const within = { session, ...connection.limit };
  return { tables: connection.tables, within, clock, tick: clock.tick, appended };
}

/** Files what the batch of this tick changed. */
export function keepChanges({ appended, tick }: Group, keys: Iterable<ChangeKey>): void {
  appended.changes.push({ _id: new ObjectId(), tick: Long.fromNumber(tick), keys: [...keys] });
}

/** Writes what was appended; called also by a job that reads it. */
export async function flush({
  tables,
  within,
  appended,
}: Pick<Group, 'tables' | 'within' | 'appended'>): Promise<void> {
  const { versions, outbox, changes } = appended;
  if (versions.length > 0) await tables.versions.insertMany(versions.splice(0), within);
  if (outbox.length > 0) await tables.outbox.insertMany(outbox.splice(0), within);
  if (changes.length > 0) await tables.changes.insertMany(changes.splice(0), within);
}

async function advanceClock({ tables, within, clock, tick }: Group, changeTicksKept: number): Promise<void> {
  if (tick === clock.tick) return;
  const floor = Math.max(clock.changesFloor, tick - changeTicksKept);
  const isDue = Math.floor(floor / TRIM_EVERY) > Math.floor(clock.changesFloor / TRIM_EVERY);
  if (isDue) await tables.changes.deleteMany({ tick: { $lte: Long.fromNumber(floor) } }, within);
  const { matchedCount } = await tables.meta.updateOne(
    { _id: 'clock' },
    { $set: { tick: Long.fromNumber(tick), changes_floor: Long.fromNumber(floor) } },
    within,
  );
  if (matchedCount !== 1) throw new ColonnadeError('unavailable', 'the estate has no clock');
}

async function commit(session: ClientSession, deadlineMs: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await session.commitTransaction();
      return;
    } catch (thrown) {
      if (!isCommitUnknown(thrown)) throw thrown;
      if (await pauseBefore(attempt, deadlineMs)) continue;
      const why = 'the database did not say whether the write took place: it may be there';
      throw new ColonnadeError('unavailable', why, { cause: thrown });
    }
  }
}
