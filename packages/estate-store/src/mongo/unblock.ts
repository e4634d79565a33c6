import { type ClientSession, UUID } from 'mongodb';
import type { Connection } from './connection.ts';

/**
 * A process that is killed within a transaction leaves it open: the server ends it after a minute
 * (`transactionLifetimeLimitSeconds`), and until then nobody can write what it wrote, the clock among it. So every
 * writer says in which session it writes, and whoever is kept from writing for too long ends the others' sessions. A
 * writer that is alive just begins its transaction again; one whose transaction is long says so, for as long as it lives.
 */

const RENEW_AFTER_MS = 60 * 60 * 1000;
/** A long transaction is left alone for so long after its process last said that it lives. */
const HELD_MS = 8000;
const HOLD_EVERY_MS = 2000;

export type WriterEntry = {
  /** Makes this session known, and again when that was long ago. */
  renew(): Promise<void>;
  /** Keeps others from ending the transactions of this session until it is disposed of. */
  hold(): Promise<AsyncDisposable>;
  /** Ends the transactions of all other writers, but for the long ones. */
  unblock(): Promise<void>;
  remove(): Promise<void>;
};

export function createWriterEntry({ db, tables, limit }: Connection, session: ClientSession): WriterEntry {
  const own = toUuid(session.id?.id);
  let renewedAtMs: number | undefined;
  return {
    async renew() {
      if (renewedAtMs !== undefined && performance.now() - renewedAtMs < RENEW_AFTER_MS) return;
      const now = performance.now();
      const options = { upsert: true, ...limit };
      await tables.writers.updateOne({ _id: own }, { $currentDate: { seen_at: true } }, options);
      renewedAtMs = now;
    },
    async hold() {
      const held = async (ms: number) => {
        const change = { $set: { held_until: new Date(Date.now() + ms) }, $currentDate: { seen_at: true } };
        await tables.writers.updateOne({ _id: own }, change as object, { upsert: true, ...limit });
      };
      await held(HELD_MS);
      // One that fails is made good by the next.
      const timer = setInterval(() => void held(HELD_MS).catch(() => undefined), HOLD_EVERY_MS).unref();
      return {
        async [Symbol.asyncDispose]() {
          clearInterval(timer);
          await held(0).catch(() => undefined);
        },
      };
    },
    async unblock() {
      const entries = await tables.writers.find({}, { hint: { _id: 1 }, ...limit }).toArray();
      const now = Date.now();
      const others = entries
        .filter(({ held_until: until }) => until === undefined || until.getTime() <= now)
        .map(({ _id }) => toUuid(_id))
        .filter((id) => !id.equals(own));
      // A user may always end sessions of its own; all writers are the same user.
      if (others.length > 0) await db.command({ killSessions: others.map((id) => ({ id })) });
    },
    async remove() {
      await tables.writers.deleteOne({ _id: own }, limit);
    },
  };
}

function toUuid(id: unknown): UUID {
  const bytes = (id as { buffer: Uint8Array }).buffer;
  return new UUID(bytes);
}
