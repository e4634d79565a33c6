import type { Redis } from 'ioredis';

/** Takes the replies of many requests at once. */
export type ReplyReader = {
  /** The reply under a key, or undefined when none came in time. @throws what Redis or the client throws */
  receive(key: string, waitMs: number): Promise<string | undefined>;
  close(): void;
};

type Waiter = { resolve: (reply: string | undefined) => void; reject: (thrown: unknown) => void };

/** How long one pop may hold up those behind it, milliseconds. */
const TURN_MS = 100;
/** As long waits a new key at most while its neighbours are slow, milliseconds. */
const SLOW_TURN_MS = 20;
/** Keys of one command. */
const MAX_KEYS = 256;

/**
 * All replies over one connection, for a client that lives long. Each is popped by a command of its own, one behind the
 * other in the order of asking, which is about the order of answers: so a reply costs one command and no wake-up of its
 * own, where a connection for each costs one on both sides.
 *
 * A reply that does not come holds up those behind it, but only for its turn: then all that are outstanding are waited for
 * by one command on a second connection as well, until the first has run dry. Whichever pops a reply hands it over.
 */
export function createReplyReader(open: () => Redis): ReplyReader {
  const waiting = new Map<string, Waiter>();
  const settle = (key: string, end: (waiter: Waiter) => void): void => {
    const waiter = waiting.get(key);
    waiting.delete(key);
    if (waiter !== undefined) end(waiter);
  };
  const aside = createAside(open, settle);
  let line: Redis | undefined;
  let lined = 0;
  let isHeldUp = false;

  const popInLine = async (key: string): Promise<void> => {
    line ??= open();
    lined += 1;
    try {
      const popped = await line.blpop(key, TURN_MS / 1000);
      if (popped !== null) settle(key, ({ resolve }) => resolve(popped[1]));
      else if (waiting.has(key)) {
        isHeldUp = true;
        aside.add(waiting.keys());
      }
    } catch (thrown) {
      settle(key, ({ reject }) => reject(thrown));
    } finally {
      lined -= 1;
      if (lined === 0) isHeldUp = false;
    }
  };
  return {
    receive(key, waitMs) {
      const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
      waiting.set(key, { resolve, reject });
      const timer = setTimeout(() => settle(key, (waiter) => waiter.resolve(undefined)), waitMs);
      if (isHeldUp) aside.add([key]);
      else void popInLine(key);
      return promise.finally(() => {
        clearTimeout(timer);
        aside.drop(key);
      });
    },
    close() {
      line?.disconnect();
      aside.close();
    },
  };
}

/** The second connection: one command for all keys it is given, again and again until none is left. */
function createAside(open: () => Redis, settle: (key: string, end: (waiter: Waiter) => void) => void) {
  const keys = new Set<string>();
  let redis: Redis | undefined;
  let isRunning = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    try {
      redis ??= open();
      while (keys.size > 0) {
        const popped = await redis.blpop(...takeTurns(keys), SLOW_TURN_MS / 1000);
        if (popped === null) continue;
        keys.delete(popped[0]);
        settle(popped[0], ({ resolve }) => resolve(popped[1]));
      }
    } catch (thrown) {
      for (const key of keys) settle(key, ({ reject }) => reject(thrown));
      keys.clear();
    } finally {
      isRunning = false;
    }
  };
  return {
    add(more: Iterable<string>): void {
      for (const key of more) keys.add(key);
      if (!isRunning) void run();
    },
    drop: (key: string) => void keys.delete(key),
    close: () => redis?.disconnect(),
  };
}

/** As many keys as one command takes; they go to the end, so that of more each has its turn. */
function takeTurns(keys: Set<string>): readonly string[] {
  const taken = [...keys].slice(0, MAX_KEYS);
  if (taken.length < keys.size) {
    for (const key of taken) {
      keys.delete(key);
      keys.add(key);
    }
  }
  return taken;
}
