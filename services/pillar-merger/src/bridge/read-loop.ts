import { setTimeout as delay } from 'node:timers/promises';
import { BRIDGE_GROUP, bridgeRequestKey, LIMITS } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { within } from '../within.ts';
import { type Entry, toEntries } from './entry.ts';
import type { InFlight } from './in-flight.ts';
import { fromRedisError, isNoGroup } from './redis.ts';
import type { Session } from './session.ts';
import type { Streams } from './streams.ts';

export type ReadLoopOptions = {
  reader: Redis;
  consumer: string;
  session: Session;
  streams: Streams;
  inFlight: InFlight;
  /** Called for every entry before it is handled. */
  onEntry: (entry: Entry) => void;
  onFault: (error: Error) => void;
};

/** One blocking read; a new master's stream is read after that at the latest. */
const BLOCK_MS = 500;
/** A read that takes longer hangs on a dead connection. */
const STUCK_MS = BLOCK_MS + 2000;
const PAUSE_MS = 100;
/** Between two looks at the other masters' streams while one has all it may have. */
const CROWDED_MS = 20;

/**
 * Reads all masters' streams in one blocking call, as much as there is room for. Disposing waits for the read under
 * way, so that nothing handed out is lost.
 */
export function startReadLoop(options: ReadLoopOptions): AsyncDisposable {
  const { inFlight } = options;
  let stopping = false;
  const loop = async (): Promise<void> => {
    while (!stopping) {
      await inFlight.whenFree();
      if (stopping) return;
      for (const entry of await readSafely(options)) {
        options.onEntry(entry);
        inFlight.add(entry);
      }
    }
  };
  const running = loop();
  return {
    async [Symbol.asyncDispose]() {
      stopping = true;
      await running;
    },
  };
}

async function readSafely(options: ReadLoopOptions): Promise<readonly Entry[]> {
  const { reader, session, streams } = options;
  try {
    const mayRead = session.fault === undefined && reader.status === 'ready' && streams.masters.length > 0;
    if (mayRead) return await readFair(options);
    await delay(PAUSE_MS);
  } catch (thrown) {
    if (isNoGroup(thrown)) session.invalidate();
    else options.onFault(fromRedisError(thrown));
    await delay(PAUSE_MS);
  }
  return [];
}

/**
 * Reads the streams of those masters that have room. While some have none, it does not block on the others: one of its own that
 * ends makes room for its next at once.
 */
async function readFair(options: ReadLoopOptions): Promise<readonly Entry[]> {
  const { streams, inFlight } = options;
  const open = streams.masters.filter((master) => inFlight.hasRoom(master, streams.masters.length));
  if (open.length === streams.masters.length) return readOnce(options, open, true);
  const entries = open.length === 0 ? [] : await readOnce(options, open, false);
  if (entries.length === 0) await Promise.race([inFlight.whenFreed(), delay(CROWDED_MS)]);
  return entries;
}

async function readOnce(
  { reader, consumer, inFlight }: ReadLoopOptions,
  masters: readonly string[],
  mayBlock: boolean,
): Promise<readonly Entry[]> {
  // COUNT is per stream: an equal share for every master, no less than one, and so few that a stream of huge entries,
  // which only a master that writes past the bridge's function can make, does not fill this process.
  const share = Math.floor(inFlight.free() / masters.length);
  const count = Math.min(Math.max(1, share), LIMITS.bridgeReadEntries);
  const reply = await within(
    reader.callBuffer(
      'XREADGROUP',
      ...['GROUP', BRIDGE_GROUP, consumer, 'COUNT', String(count)],
      ...(mayBlock ? ['BLOCK', String(BLOCK_MS)] : []),
      ...['STREAMS', ...masters.map(bridgeRequestKey), ...masters.map(() => '>')],
    ),
    STUCK_MS,
    () => {
      reader.disconnect(true);
      return new Error('a read got no answer');
    },
  );
  const byStream = new Map(masters.map((master) => [bridgeRequestKey(master), master]));
  return ((reply ?? []) as [Buffer, unknown][]).flatMap(([key, raw]) => {
    const master = byStream.get(key.toString('latin1'));
    return master === undefined ? [] : toEntries(master, raw, 1);
  });
}
