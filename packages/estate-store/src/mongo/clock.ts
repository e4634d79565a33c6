import { ColonnadeError } from '@colonnade/contracts';
import type { ClientSession } from 'mongodb';
import type { Clock } from '../port.ts';
import type { ReadClock as AnyClock } from '../rules/clock.ts';
import type { ClockDocument, Connection } from './connection.ts';
import { toNumber } from './documents.ts';
import { SCHEMA_VERSION } from './schema.ts';

/** On MongoDB all writers write the clock, so what must hold for each of them stands beside it. */
export type ReadClock = AnyClock & { closedKids: readonly string[] };

/** The clock in a transaction: the first read of it, which fixes its moment. @throws ColonnadeError */
export async function readClock(connection: Connection, session: ClientSession): Promise<ReadClock> {
  const { tables, limit } = connection;
  return toClock(await tables.meta.findOne({ _id: 'clock' }, { session, ...limit }));
}

/**
 * The clock as no write acknowledged before this call can be missing from it: the server asks the majority whether
 * it is still their primary.
 * @throws ColonnadeError `unavailable` also where no estate is yet
 */
export async function readNewestClock({ tables, limit }: Connection): Promise<ReadClock> {
  const options = { readConcern: { level: 'linearizable' }, ...limit } as const;
  return toClock(await tables.meta.findOne({ _id: 'clock' }, options));
}

function toClock(found: unknown): ReadClock {
  if (found === null) throw new ColonnadeError('unavailable', 'the database holds no estate yet');
  const document = found as ClockDocument;
  checkNotNewer(document.schema_version);
  if (document.schema_version < SCHEMA_VERSION) {
    throw new ColonnadeError('unavailable', 'the estate waits for its writer to bring it to this schema');
  }
  return {
    incarnation: document.incarnation,
    tick: toNumber(document.tick),
    changesFloor: toNumber(document.changes_floor),
    closedKids: document.closed_kids ?? [],
  };
}

/** @throws ColonnadeError `misconfigured` when a newer program has already migrated the estate */
export function checkNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return;
  throw new ColonnadeError(
    'misconfigured',
    `the estate has schema ${version}, this program knows up to ${SCHEMA_VERSION}: run the newer program`,
  );
}

/** Whether a moment holds all that another one does, as far as clocks tell. */
export function isAsNew(clock: Clock, other: Clock): boolean {
  return clock.incarnation !== other.incarnation || clock.tick >= other.tick;
}
