import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { createBacklog } from './backlog.ts';
import { startClaimLoop } from './claim-loop.ts';
import { startConsumerCleanup } from './consumers.ts';
import { type Entry, startOf } from './entry.ts';
import { forgetConsumer, storeReply } from './functions.ts';
import { type EntryOutcome, type HandleDeps, handleEntry } from './handle-entry.ts';
import { createInFlight } from './in-flight.ts';
import { startReadLoop } from './read-loop.ts';
import { createRedis, fromRedisError, isUnknownFunction, type RedisAddress } from './redis.ts';
import { createSession, type SessionEvents } from './session.ts';
import { createStreams } from './streams.ts';

export type BridgeOptions = {
  redis: RedisAddress;
  /** Requests worked on at once. */
  concurrency: number;
  claimIdleMs: number;
  /** Requests that waited longer before they were read make this merger not ready. */
  backlogMs: number;
  listMasters: () => Promise<readonly string[]>;
  answer: HandleDeps['answer'];
  recordDenial: HandleDeps['recordDenial'];
  events: SessionEvents & {
    outcome(outcome: EntryOutcome): void;
    claimed(entry: Entry): void;
    redisFault(error: Error): void;
  };
};

export type Bridge = AsyncDisposable & {
  /** Throws why it does not work, or that it is behind. */
  check(): void;
  /** The estate's masters may be others now. */
  refreshMasters(): Promise<void>;
  readonly inFlight: number;
};

/** Answers the requests of all masters over Redis (DESIGN section 5). Disposing drains: what was taken is answered. */
export async function createBridge(options: BridgeOptions): Promise<Bridge> {
  const { events } = options;
  const consumer = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const commands = createRedis(options.redis, 'commands', consumer);
  const reader = createRedis(options.redis, 'reader', consumer);
  for (const connection of [commands, reader]) {
    connection.on('error', (error: Error) => events.redisFault(fromRedisError(error)));
  }
  const streams = createStreams();
  const { listMasters } = options;
  const session = createSession({ commands, streams, consumer, listMasters, events });
  const backlog = createBacklog();
  let draining = false;

  const handleDeps: HandleDeps = {
    answer: options.answer,
    recordDenial: options.recordDenial,
    nowMs: session.nowMs,
    onOutcome: events.outcome,
    storeReply: async (reply) => {
      try {
        return await storeReply(commands, reply);
      } catch (thrown) {
        if (isUnknownFunction(thrown)) session.invalidate();
        throw fromRedisError(thrown);
      }
    },
  };
  const inFlight = createInFlight(options.concurrency, (entry) => handleEntry(entry, handleDeps));
  const shared = { consumer, session, streams, inFlight, onFault: events.redisFault };
  const onEntry = (entry: Entry) => backlog.noteAge(session.nowMs() - startOf(entry.id));
  // Redis may come later, so nobody waits for the first connection here.
  for (const connection of [commands, reader]) connection.connect().catch(() => {});
  const readLoop = startReadLoop({ ...shared, reader, onEntry });
  const { claimIdleMs } = options;
  const claimLoop = startClaimLoop({
    ...shared,
    commands,
    claimIdleMs,
    isDraining: () => draining,
    onClaimed: events.claimed,
  });
  const cleanup = startConsumerCleanup({ commands, session, streams, consumer });

  return {
    check() {
      if (session.fault !== undefined) throw new Error(session.fault);
      const waitedMs = backlog.oldestMs();
      if (waitedMs > options.backlogMs) throw new Error(`requests waited up to ${Math.round(waitedMs)} ms`);
    },
    refreshMasters: () => session.refreshMasters(),
    get inFlight() {
      return inFlight.size;
    },
    async [Symbol.asyncDispose]() {
      draining = true;
      await session[Symbol.asyncDispose]();
      await readLoop[Symbol.asyncDispose]();
      await inFlight.whenIdle();
      await claimLoop[Symbol.asyncDispose]();
      await cleanup[Symbol.asyncDispose]();
      const forget = streams.masters.map((master) => forgetConsumer(commands, master, consumer, 0));
      await Promise.allSettled(forget);
      for (const connection of [commands, reader]) connection.disconnect();
    },
  };
}
