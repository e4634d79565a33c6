import { type Call, ColonnadeError, remainingMs } from '@colonnade/contracts';
import type { ChangeKey, Clock, EstateReader, EstateSnapshot } from '@colonnade/estate-store';
import { createByteLru } from './byte-lru.ts';
import { piecesOf, queryFor } from './estate-query.ts';
import { type Attempt, attempt, type EstateView, type Piece } from './estate-view.ts';
import { createReadQueue } from './read-queue.ts';
import { within } from './within.ts';

export type EstateCacheOptions = {
  reader: Pick<EstateReader, 'snapshot'>;
  /** `off`: nothing is kept from one read to the next; for a store that someone else writes to as well. */
  mode: 'on' | 'off';
  maxBytes: number;
  /** A read of the store that takes longer counts as `unavailable`. */
  readTimeoutMs: number;
  /** Called when a master was added, changed or removed, or may have been. */
  onMastersChanged?: () => void;
  onRead?: (facts: { keys: number; durationMs: number; cleared: boolean }) => void;
};

export type EstateCache = {
  /**
   * Runs a pure computation on one consistent moment of the estate, no older than this call.
   * @param options `fresh`: from the store, whatever is cached
   * @throws ColonnadeError `unavailable`, or what the computation throws
   */
  read<T>(
    call: Call,
    compute: (view: EstateView) => T,
    options?: { fresh: boolean },
  ): Promise<{ clock: Clock; result: T }>;
  /** Reads the clock and drops what has changed. */
  refresh(call: Call): Promise<Clock>;
  readonly bytes: number;
};

/** Attempts on what the cache holds; after these everything is fetched anew, from one moment. */
const PATIENT_ROUNDS = 3;
const MAX_ROUNDS = 10;

/**
 * Keeps pieces of the estate, all of them valid at one clock. Every computation waits for a read of the store that
 * began after it; a wave of them shares one read, which reports the pieces that changed and brings those that miss.
 */
export function createEstateCache(options: EstateCacheOptions): EstateCache {
  const held = createHeldPieces(options);
  const queue = createReadQueue(held.readWave);
  return {
    async read(call, compute, { fresh } = { fresh: false }) {
      // The first attempt only finds out what to read; it counts when the read shows that nothing of it has changed.
      let last = attempt(held.get, compute);
      for (let round = 1; round <= MAX_ROUNDS; round++) {
        const force = fresh || round > PATIENT_ROUNDS;
        await within(queue.join(last.used.keys(), force), remainingMs(call), storeTimeout);
        if (last.missing || !isStillTrue(last, held.get)) last = attempt(held.get, compute);
        if (!last.missing) return { clock: held.clock(), result: last.outcome() };
      }
      throw new ColonnadeError('unavailable', 'the estate changes faster than it can be read');
    },
    async refresh(call) {
      await within(queue.join([], false), remainingMs(call), storeTimeout);
      return held.clock();
    },
    get bytes() {
      return held.bytes();
    },
  };
}

/** The pieces at hand and the clock at which all of them are valid. */
function createHeldPieces(options: EstateCacheOptions) {
  const pieces = createByteLru<ChangeKey, Piece>(options.maxBytes);
  let clock: Clock | undefined;

  const apply = (snapshot: EstateSnapshot): boolean => {
    const cleared = isOtherTime(clock, snapshot) || snapshot.changed === 'all';
    if (cleared) pieces.clear();
    else for (const key of snapshot.changed as readonly ChangeKey[]) pieces.delete(key);
    clock = snapshot.clock;
    return cleared;
  };
  return {
    get: pieces.get,
    bytes: () => pieces.bytes,
    clock(): Clock {
      if (clock === undefined) throw new ColonnadeError('internal', 'the estate was not read');
      return clock;
    },
    async readWave(keys: ReadonlySet<ChangeKey>, forced: ReadonlySet<ChangeKey>): Promise<void> {
      if (options.mode === 'off') {
        pieces.clear();
        clock = undefined;
      }
      pieces.evict(keys);
      const wanted = [...keys].filter((key) => forced.has(key) || !pieces.has(key));
      const query = queryFor(clock, wanted);
      const startedMs = performance.now();
      const snapshot = await within(options.reader.snapshot(query), options.readTimeoutMs, storeTimeout);
      const cleared = apply(snapshot);
      const loaded = piecesOf(query, snapshot);
      for (const { key, piece, bytes } of loaded) pieces.set(key, piece, bytes);
      options.onRead?.({ keys: loaded.length, durationMs: performance.now() - startedMs, cleared });
      if (cleared || touchesMasters(snapshot)) options.onMastersChanged?.();
    },
  };
}

/** Pieces are replaced, never changed: the same objects mean the same estate. */
function isStillTrue<T>(last: Attempt<T>, lookup: (key: ChangeKey) => Piece | undefined): boolean {
  for (const [key, piece] of last.used) if (lookup(key) !== piece) return false;
  return true;
}

/** A clock of another incarnation, or one that went back: the estate was restored, nothing cached may be used. */
function isOtherTime(known: Clock | undefined, { clock }: EstateSnapshot): boolean {
  return known === undefined || clock.incarnation !== known.incarnation || clock.tick < known.tick;
}

function touchesMasters({ changed }: EstateSnapshot): boolean {
  return changed !== 'all' && changed.some((key) => key.startsWith('master:'));
}

function storeTimeout(): ColonnadeError {
  return new ColonnadeError('unavailable', 'the store does not answer in time');
}
