import { BRIDGE_GROUP, bridgeRequestKey } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { type Entry, toEntries } from './entry.ts';
import type { InFlight } from './in-flight.ts';
import { claimBuffers, fromRedisError, isNoGroup } from './redis.ts';
import type { Session } from './session.ts';
import type { Streams } from './streams.ts';

export type ClaimLoopOptions = {
  commands: Redis;
  consumer: string;
  session: Session;
  streams: Streams;
  inFlight: InFlight;
  /** An entry nobody has worked on for so long is taken over; at most a third of the usual ttl. */
  claimIdleMs: number;
  /** While it drains it takes over nothing more. */
  isDraining: () => boolean;
  onClaimed: (entry: Entry) => void;
  onFault: (error: Error) => void;
};

type Pending = { id: string; deliveries: number };

/**
 * Takes over what another merger left behind, and shows that our own entries are being worked on, so that a slow
 * answer is not mistaken for a dead merger.
 */
export function startClaimLoop(options: ClaimLoopOptions): AsyncDisposable {
  let running: Promise<void> | undefined;
  const timer = setInterval(
    () => {
      if (options.session.fault !== undefined) return;
      running ??= sweep(options).finally(() => {
        running = undefined;
      });
    },
    Math.ceil(options.claimIdleMs / 3),
  );
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}

async function sweep(options: ClaimLoopOptions): Promise<void> {
  try {
    await keepOwn(options);
    if (options.isDraining()) return;
    await Promise.all(options.streams.masters.map((master) => takeOver(master, options)));
  } catch (thrown) {
    if (isNoGroup(thrown)) options.session.invalidate();
    else options.onFault(fromRedisError(thrown));
  }
}

/** JUSTID resets the idle time and does not count as a delivery. */
async function keepOwn({ commands, consumer, inFlight }: ClaimLoopOptions): Promise<void> {
  await Promise.all(
    [...inFlight.byMaster()].map(([master, ids]) =>
      commands.call('XCLAIM', bridgeRequestKey(master), BRIDGE_GROUP, consumer, '0', ...ids, 'JUSTID'),
    ),
  );
}

async function takeOver(master: string, options: ClaimLoopOptions): Promise<void> {
  const { commands, consumer, inFlight, claimIdleMs } = options;
  const room = inFlight.roomForClaims();
  if (room === 0) return;
  const key = bridgeRequestKey(master);
  const reply = await commands.call('XPENDING', key, BRIDGE_GROUP, 'IDLE', claimIdleMs, '-', '+', room);
  const idle = toPending(reply).filter(({ id }) => !inFlight.has(master, id));
  await Promise.all(
    idle.map(async ({ id, deliveries }) => {
      // Only one of the mergers that see it gets it: the idle time is checked again by the claim.
      const raw = await claimBuffers(commands, key, BRIDGE_GROUP, consumer, claimIdleMs, id);
      for (const entry of toEntries(master, raw, deliveries + 1)) {
        options.onClaimed(entry);
        inFlight.add(entry);
      }
    }),
  );
}

function toPending(reply: unknown): readonly Pending[] {
  return (reply as [id: string, consumer: string, idleMs: number, deliveries: number][]).map(
    ([id, , , deliveries]) => ({ id, deliveries }),
  );
}
