import { BRIDGE_ALIVE_KEY } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { checkRedis } from './check-redis.ts';
import { loadFunctions } from './functions.ts';
import { fromRedisError } from './redis.ts';
import type { Streams } from './streams.ts';

/** Whether the bridge may work with the Redis it is connected to now. */
export type Session = AsyncDisposable & {
  /** Undefined when it may, else why not. */
  readonly fault: string | undefined;
  /** Something is not there any more (functions, groups): prepare again. */
  invalidate(): void;
  /** Reads the list of masters again. */
  refreshMasters(): Promise<void>;
  /** Redis's own clock, milliseconds since the epoch, good to a round trip. Never compared with this host's. */
  nowMs(): number;
};

export type SessionEvents = {
  refused(reason: string): void;
  prepared(): void;
  lost(reason: string): void;
};

export type SessionOptions = {
  commands: Redis;
  streams: Streams;
  consumer: string;
  listMasters: () => Promise<readonly string[]>;
  events: SessionEvents;
};

/** The alive key lives for this long after the last sign of the last merger. */
const ALIVE_MS = 5000;
const ALIVE_REFRESH_MS = 1000;
/** Someone may change the settings of a running Redis. */
const RECHECK_MS = 30_000;

/**
 * Prepares each connection (settings, functions, groups) before anything is read, shows that a merger lives, and
 * keeps checking while Redis is not as it must be.
 */
export function createSession(options: SessionOptions): Session {
  const { commands, events } = options;
  const verdict = createVerdict(events.prepared);
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let clock = { redisMs: Date.now(), atMs: performance.now() };

  const fail = (reason: string, tell: (reason: string) => void): void => {
    verdict.fail(reason, tell);
    checkedAtMs = Number.NEGATIVE_INFINITY;
  };
  const prepare = async (): Promise<void> => {
    await checkRedis(commands);
    await loadFunctions(commands);
    await updateStreams(options);
    checkedAtMs = performance.now();
  };
  const beat = async (): Promise<void> => {
    if (commands.status !== 'ready') return;
    try {
      if (performance.now() - checkedAtMs > RECHECK_MS) await prepare();
      clock = await showLife(options);
      verdict.succeed();
    } catch (thrown) {
      fail(fromRedisError(thrown).message, events.refused);
    }
  };
  const heart = startHeart(beat, ALIVE_REFRESH_MS);
  const closed = () => fail('not connected', events.lost);
  commands.on('ready', heart.now);
  commands.on('close', closed);

  return {
    get fault() {
      return verdict.fault();
    },
    invalidate() {
      fail('functions or groups are gone', events.lost);
      heart.now();
    },
    refreshMasters: () => updateStreams(options),
    nowMs: () => clock.redisMs + (performance.now() - clock.atMs),
    async [Symbol.asyncDispose]() {
      commands.off('ready', heart.now);
      commands.off('close', closed);
      await heart.stop();
    },
  };
}

/** Whether the bridge may work, told to the log when it changes. */
function createVerdict(tellGood: () => void) {
  let fault: string | undefined = 'not connected yet';
  return {
    fault: () => fault,
    fail(reason: string, tell: (reason: string) => void) {
      if (fault !== reason) tell(reason);
      fault = reason;
    },
    succeed() {
      if (fault !== undefined) tellGood();
      fault = undefined;
    },
  };
}

/** Without the store, the streams known before are read on, so that masters are told `unavailable`. */
async function updateStreams({ streams, commands, listMasters }: SessionOptions): Promise<void> {
  await streams.update(commands, await listMasters().catch(() => undefined));
}

/** Refreshes the alive key, and asks what time it is. */
async function showLife({ commands, consumer }: SessionOptions): Promise<{ redisMs: number; atMs: number }> {
  const askedMs = performance.now();
  const [[seconds, micros]] = await Promise.all([
    commands.time(),
    commands.set(BRIDGE_ALIVE_KEY, consumer, 'PX', ALIVE_MS),
  ]);
  const redisMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  return { redisMs, atMs: (askedMs + performance.now()) / 2 };
}

/** Runs a task every `intervalMs`, or at once when told so; never twice at the same time. */
function startHeart(task: () => Promise<void>, intervalMs: number) {
  let running: Promise<void> | undefined;
  let again = false;
  const now = (): void => {
    again = running !== undefined;
    running ??= task().finally(() => {
      running = undefined;
      if (again) now();
    });
  };
  const timer = setInterval(now, intervalMs);
  return {
    now,
    async stop() {
      clearInterval(timer);
      again = false;
      await running;
    },
  };
}
