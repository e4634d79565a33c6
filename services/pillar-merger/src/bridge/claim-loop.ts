import { BRIDGE_GROUP, bridgeRequestKey, LIMITS } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { readIdleTimes } from './consumers.ts';
import { type Entry, toEntries } from './entry.ts';
import { MAX_DELIVERIES } from './handle-entry.ts';
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

type Pending = { id: string; owner: string; deliveries: number };

/** An owner that was not seen for so long, and for two claim times, is dead; until then it may only stand still. */
const DEAD_AFTER_MS = 2500;

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
  const mayClaim = createOwnerCheck(master, options);
  const claim = async (pending: Pending): Promise<void> => {
    const { id, owner, deliveries } = pending;
    // Handed to two already: the next one answers `internal`, so the owner has to be dead, and not late.
    if (deliveries >= MAX_DELIVERIES && !(await mayClaim(owner))) return;
    // One's own entry, whose delivery was lost with a connection, has killed nobody and does not count.
    const isOwn = owner === consumer;
    const retryCount = isOwn ? ['RETRYCOUNT', deliveries] : [];
    // Only one of the mergers that see it gets it: the idle time is checked again by the claim.
    const raw = await claimBuffers(commands, key, BRIDGE_GROUP, consumer, claimIdleMs, id, ...retryCount);
    for (const entry of toEntries(master, raw, isOwn ? deliveries : deliveries + 1)) {
      options.onClaimed(entry);
      inFlight.add(entry);
    }
  };
  // As few at once as are read at once, for the same reason.
  for (let at = 0; at < idle.length; at += LIMITS.bridgeReadEntries) {
    await Promise.all(idle.slice(at, at + LIMITS.bridgeReadEntries).map(claim));
  }
}

function toPending(reply: unknown): readonly Pending[] {
  return (reply as [id: string, consumer: string, idleMs: number, deliveries: number][]).map(
    ([id, owner, , deliveries]) => ({ id, owner, deliveries }),
  );
}

/**
 * Whether an entry that was handed out twice may be taken: its owner is dead, so that it may be what kills mergers, or us. Two mergers that each stood still for
 * longer than the claim time, on a busy host, look the same for a moment. Consumers are asked for once at most.
 */
function createOwnerCheck(master: string, options: ClaimLoopOptions) {
  const { commands, consumer, claimIdleMs } = options;
  let idleTimes: Promise<ReadonlyMap<string, number>> | undefined;
  return async (owner: string): Promise<boolean> => {
    if (owner === consumer) return true;
    idleTimes ??= readIdleTimes(commands, master);
    const idleMs = (await idleTimes).get(owner) ?? Number.POSITIVE_INFINITY;
    return idleMs >= Math.max(DEAD_AFTER_MS, 2 * claimIdleMs);
  };
}
