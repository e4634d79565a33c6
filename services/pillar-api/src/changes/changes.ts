import type { Readable } from 'node:stream';
import { ColonnadeError, LIMITS, toColonnadeError } from '@colonnade/contracts';
import type { Clock, EstateStore } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import { selectOn } from '../auth/scope.ts';
import { writeEventId } from './event-id.ts';
import { type Change, createFeed, type Feed, readChange } from './feed.ts';
import { subjectOfKey } from './keys.ts';
import { createEventStream, type EventStream } from './stream.ts';

/** The changes of the estate, for whoever may read it. Keys only: what is new is read with the other routes. */
export type Changes = AsyncDisposable & {
  /** Goes on until the reader leaves. @throws ColonnadeError `overloaded` | `rate_limited` (too many streams) */
  open(principal: Principal, since: Clock | undefined): Promise<Readable>;
  /** What there is now, and the end. */
  once(principal: Principal, since: Clock | undefined): Promise<string>;
  wake(): void;
};

type Reader = {
  principal: Principal;
  stream: EventStream;
  heard: Change[] | undefined;
  told: number;
  telling: Promise<void>;
};

/** Between two signs of life, which are also when a token is looked at again. */
const BEAT_MS = 15_000;

export function createChanges(options: {
  store: Pick<EstateStore, 'snapshot'>;
  pollMs: number;
  failed: (error: unknown) => void;
  beatMs?: number;
}): Changes {
  const feed: Feed = createFeed(options);
  const readers = new Set<Reader>();
  const beat = setInterval(() => {
    for (const reader of readers) void look(reader);
  }, options.beatMs ?? BEAT_MS).unref();

  const look = async (reader: Reader) => {
    try {
      reader.principal = await reader.principal.renew();
      reader.stream.beat();
    } catch (thrown) {
      // While nobody can say who somebody is, nothing is told to him.
      reader.stream.end(toColonnadeError(thrown).code);
    }
  };
  const tell = (reader: Reader, change: Change) => {
    if (change.changed !== 'all' && change.clock.tick <= reader.told) return;
    reader.told = change.clock.tick;
    // One after the other: the filter may have to ask the store.
    reader.telling = reader.telling.then(async () => {
      const event = await eventOf(reader.principal, change);
      if (event !== undefined) reader.stream.send(event);
    });
    reader.telling = reader.telling.catch((thrown) => reader.stream.end(toColonnadeError(thrown).code));
  };
  return {
    async open(principal, since) {
      checkRoom(readers, principal);
      const stream = createEventStream(LIMITS.changeBacklogBytes);
      const reader: Reader = { principal, stream, heard: [], told: -1, telling: Promise.resolve() };
      readers.add(reader);
      stream.body.once('close', () => readers.delete(reader));
      // Heard from now on, and told after what was before: nothing falls in between.
      try {
        const leave = await feed.listen((change) => {
          if (reader.heard === undefined) tell(reader, change);
          else reader.heard.push(change);
        });
        stream.body.once('close', leave);
        const first = await readChange(options.store, since);
        stream.send({ name: 'ready', id: writeEventId(since ?? first.clock), data: {} });
        reader.told = since?.tick ?? first.clock.tick;
        tell(reader, first);
        const { heard = [] } = reader;
        reader.heard = undefined;
        for (const change of heard) tell(reader, change);
        return stream.body;
      } catch (thrown) {
        readers.delete(reader);
        stream.body.destroy();
        throw thrown;
      }
    },
    async once(principal, since) {
      const stream = createEventStream(LIMITS.changeBacklogBytes);
      const first = await readChange(options.store, since);
      stream.send({ name: 'ready', id: writeEventId(since ?? first.clock), data: {} });
      const event = await eventOf(principal, first);
      if (event !== undefined && (first.changed === 'all' || first.changed.length > 0)) stream.send(event);
      return String(stream.body.read() ?? '');
    },
    wake: feed.wake,
    async [Symbol.asyncDispose]() {
      clearInterval(beat);
      for (const { stream } of readers) stream.end('unavailable');
      await feed[Symbol.asyncDispose]();
    },
  };
}

function checkRoom(readers: ReadonlySet<Reader>, { rateKey }: Principal): void {
  if (readers.size >= LIMITS.changeStreams) {
    throw new ColonnadeError('overloaded', `this process has ${LIMITS.changeStreams} open streams already`);
  }
  const own = [...readers].filter(({ principal }) => principal.rateKey === rateKey).length;
  if (own < LIMITS.changeStreamsPerCaller) return;
  throw new ColonnadeError('rate_limited', `you have ${own} open streams of changes already`);
}

/** What this reader may hear of a change; undefined: nothing of it is his business. */
async function eventOf(principal: Principal, { clock, changed }: Change) {
  const id = writeEventId(clock);
  if (changed === 'all') return { name: 'reset', id, data: { clock: clock.tick } };
  const isVisible = await selectOn(principal, 'estate:read');
  const isWhole = principal.access.whole.has('estate:read');
  const seen = changed.filter((key) => {
    const subject = subjectOfKey(key);
    if (subject === 'estate') return isWhole;
    return subject === 'tree' || isVisible(subject);
  });
  return seen.length === 0 ? undefined : { name: 'changed', id, data: { clock: clock.tick, changed: seen } };
}
