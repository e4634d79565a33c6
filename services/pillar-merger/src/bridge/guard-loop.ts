import type { Redis } from 'ioredis';
import { fromRedisError, isUnknownFunction } from './redis.ts';
import type { Session } from './session.ts';
import type { Streams } from './streams.ts';

export type GuardLoopOptions = {
  commands: Redis;
  session: Session;
  streams: Streams;
  onFault: (error: Error) => void;
};

const EVERY_MS = 500;

/** Looks after every stream, since one that is broken keeps the others from being read. */
export function startGuardLoop({ commands, session, streams, onFault }: GuardLoopOptions): AsyncDisposable {
  const look = async (): Promise<void> => {
    try {
      await streams.guard(commands);
    } catch (thrown) {
      if (isUnknownFunction(thrown)) session.invalidate();
      else onFault(fromRedisError(thrown));
    }
  };
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (session.fault !== undefined) return;
    running ??= look().finally(() => {
      running = undefined;
    });
  }, EVERY_MS);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}
