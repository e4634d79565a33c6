import { BRIDGE_GROUP, bridgeRequestKey } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { forgetConsumer } from './functions.ts';
import type { Session } from './session.ts';
import type { Streams } from './streams.ts';

export type CleanupOptions = {
  commands: Redis;
  session: Session;
  streams: Streams;
  /** This merger's own name. */
  consumer: string;
};

const EVERY_MS = 60_000;
/** A live merger shows itself to every stream each half second. */
const DEAD_AFTER_MS = 10 * 60_000;

/** Removes the names that dead mergers left in the groups, once nothing is pending for them. */
export function startConsumerCleanup(options: CleanupOptions): AsyncDisposable {
  let running: Promise<unknown> | undefined;
  const timer = setInterval(() => {
    if (options.session.fault !== undefined) return;
    running ??= removeDead(options).finally(() => {
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

/** A fault is left to the next round: nothing depends on this. */
export async function removeDead(
  { commands, streams, consumer }: Omit<CleanupOptions, 'session'>,
  deadAfterMs = DEAD_AFTER_MS,
): Promise<void> {
  await Promise.allSettled(
    streams.masters.map(async (master) => {
      const names = [...(await readIdleTimes(commands, master)).keys()];
      const others = names.filter((name) => name !== consumer);
      await Promise.all(others.map((name) => forgetConsumer(commands, master, name, deadAfterMs)));
    }),
  );
}

/** The consumers of a master's stream, and how many milliseconds ago each was seen. */
export async function readIdleTimes(commands: Redis, master: string): Promise<ReadonlyMap<string, number>> {
  const rows = (await commands.xinfo('CONSUMERS', bridgeRequestKey(master), BRIDGE_GROUP)) as unknown[][];
  return new Map(
    rows.map((fields) => [
      String(fields[fields.indexOf('name') + 1]),
      Number(fields[fields.indexOf('idle') + 1]),
    ]),
  );
}
