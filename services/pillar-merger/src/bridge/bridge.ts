import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import { createBacklog } from './backlog.ts';
import { startClaimLoop } from './claim-loop.ts';
import { startConsumerCleanup } from './consumers.ts';
import { type Entry, startOf } from './entry.ts';
import { forgetConsumer, type StreamFault, storeReply } from './functions.ts';
import { startGuardLoop } from './guard-loop.ts';
import { type EntryOutcome, type HandleDeps, handleEntry } from './handle-entry.ts';
import { createInFlight } from './in-flight.ts';
import { startReadLoop } from './read-loop.ts';
import { createRedis, fromRedisError, isUnknownFunction, type RedisAddress } from './redis.ts';
import { addRefresh, type Refresh } from './refresh.ts';
import { createSession, type Session, type SessionEvents } from './session.ts';
import { createStreamFaultRecorder } from './stream-faults.ts';
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
  recordRefusal: HandleDeps['recordRefusal'];
  events: SessionEvents & {
    outcome(outcome: EntryOutcome): void;
    claimed(entry: Entry): void;
    redisFault(error: Error): void;
    streamFault(fault: StreamFault): void;
    recordFailed(thrown: unknown): void;
  };
};

export type Bridge = AsyncDisposable & {
  /** Throws why it does not work, or that it is behind. */
  check(): Promise<void>;
  /** The estate's masters may be others now. */
  refreshMasters(): Promise<void>;
  /** Tells a master whose pillar to refresh. @throws ColonnadeError `redis_unavailable` */
  addRefresh(refresh: Refresh): Promise<string>;
};

/** Answers the requests of all masters over Redis. Disposing drains: what was taken is answered. */
export function createBridge(options: BridgeOptions): Bridge {
  const { events, listMasters } = options;
  const consumer = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const [commands, reader] = connect(options, consumer);
  const recordStreamFault = createStreamFaultRecorder(options.recordRefusal, events.recordFailed);
  const streams = createStreams((fault) => {
    events.streamFault(fault);
    recordStreamFault(fault);
  });
  const session = createSession({ commands, streams, consumer, listMasters, events });
  const backlog = createBacklog();
  const handleDeps = createHandleDeps(options, commands, session);
  const inFlight = createInFlight(options.concurrency, (entry) => handleEntry(entry, handleDeps));
  let draining = false;

  const shared = { consumer, session, streams, inFlight, onFault: events.redisFault };
  const onEntry = (entry: Entry) => backlog.noteAge(session.nowMs() - startOf(entry.id));
  const readLoop = startReadLoop({ ...shared, reader, onEntry });
  const { claimIdleMs } = options;
  const isDraining = () => draining;
  const claimLoop = startClaimLoop({
    ...shared,
    commands,
    claimIdleMs,
    isDraining,
    onClaimed: events.claimed,
  });
  const guardLoop = startGuardLoop({ ...shared, commands });
  const cleanup = startConsumerCleanup({ commands, session, streams, consumer });

  return {
    async check() {
      if (session.fault !== undefined) throw new Error(session.fault);
      const waitedMs = backlog.oldestMs();
      if (waitedMs > options.backlogMs) throw new Error(`requests waited up to ${Math.round(waitedMs)} ms`);
      const fullMs = inFlight.fullMs();
      if (fullMs > options.backlogMs) throw new Error(`no room for a request for ${Math.round(fullMs)} ms`);
      // All of that is what was seen last; a Redis that hangs is found by asking it.
      await commands.ping();
    },
    refreshMasters: () => session.refreshMasters(),
    addRefresh: (refresh) => addRefresh(commands, refresh),
    async [Symbol.asyncDispose]() {
      draining = true;
      await session[Symbol.asyncDispose]();
      await readLoop[Symbol.asyncDispose]();
      await inFlight.whenIdle();
      await claimLoop[Symbol.asyncDispose]();
      await guardLoop[Symbol.asyncDispose]();
      await cleanup[Symbol.asyncDispose]();
      const forget = streams.masters.map((master) => forgetConsumer(commands, master, consumer, 0));
      await Promise.allSettled(forget);
      for (const connection of [commands, reader]) connection.disconnect();
    },
  };
}

/** Redis may come later, so nobody waits for the first connection. */
function connect({ redis, events }: BridgeOptions, name: string): readonly [commands: Redis, reader: Redis] {
  const connections = [createRedis(redis, 'commands', name), createRedis(redis, 'reader', name)] as const;
  for (const connection of connections) {
    connection.on('error', (error: Error) => events.redisFault(fromRedisError(error)));
    connection.connect().catch(() => {});
  }
  return connections;
}

function createHandleDeps(options: BridgeOptions, commands: Redis, session: Session): HandleDeps {
  return {
    answer: options.answer,
    recordRefusal: options.recordRefusal,
    nowMs: session.nowMs,
    onOutcome: options.events.outcome,
    async storeReply(reply) {
      try {
        return await storeReply(commands, reply);
      } catch (thrown) {
        if (isUnknownFunction(thrown)) session.invalidate();
        throw fromRedisError(thrown);
      }
    },
  };
}
