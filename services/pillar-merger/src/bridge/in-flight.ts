import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry } from './entry.ts';

/** The entries this merger works on: at most `limit` at once, the rest waits here in order. */
export type InFlight = {
  /** Takes an entry unless it is here already. One that was delivered before goes ahead of those that wait. */
  add(entry: Entry): void;
  has(master: string, entryId: string): boolean;
  /** How many more may come without waiting. */
  free(): number;
  /** Whether a master may have one more of them: none may hold more than its share, so that others find room. */
  hasRoom(master: string, masters: number): boolean;
  /** How long there has been no room at all, milliseconds. */
  fullMs(): number;
  /** How many may be taken over: also when all is busy, since those have waited longest. At most as many again. */
  roomForClaims(): number;
  /** Resolves once something is free, and what ends in the same moment has ended too. */
  whenFree(): Promise<void>;
  /** Resolves when the next one has ended. */
  whenFreed(): Promise<void>;
  /** Ids by master, for keeping them ours. */
  byMaster(): ReadonlyMap<string, readonly string[]>;
  /** Resolves when nothing is left. */
  whenIdle(): Promise<void>;
  readonly size: number;
};

/** Of the limit, what one of several masters may hold: while its requests hang, the others' are answered. */
const SHARE = 0.75;

/** @param handle answers one entry; must not throw */
export function createInFlight(limit: number, handle: (entry: Entry) => Promise<void>): InFlight {
  const entries = new Map<string, Entry>();
  const counts = new Map<string, number>();
  let fullSinceMs: number | undefined;
  const waiting: Entry[] = [];
  let working = 0;
  let freed = Promise.withResolvers<void>();

  const start = (entry: Entry): void => {
    working += 1;
    void handle(entry).finally(() => {
      working -= 1;
      entries.delete(keyOf(entry.master, entry.id));
      count(entry.master, -1);
      const next = waiting.shift();
      if (next !== undefined) start(next);
      freed.resolve();
      freed = Promise.withResolvers<void>();
    });
  };
  const free = (): number => Math.max(0, limit - entries.size);
  const count = (master: string, by: number): void => {
    const now = (counts.get(master) ?? 0) + by;
    if (now === 0) counts.delete(master);
    else counts.set(master, now);
    fullSinceMs = free() > 0 ? undefined : (fullSinceMs ?? performance.now());
  };

  return {
    add(entry) {
      const key = keyOf(entry.master, entry.id);
      if (entries.has(key)) return;
      entries.set(key, entry);
      count(entry.master, 1);
      if (working < limit) start(entry);
      else if (entry.deliveries > 1) waiting.unshift(entry);
      else waiting.push(entry);
    },
    has: (master, entryId) => entries.has(keyOf(master, entryId)),
    free,
    hasRoom(master, masters) {
      const share = masters > 1 ? Math.max(1, Math.floor(limit * SHARE)) : limit;
      return free() > 0 && (counts.get(master) ?? 0) < share;
    },
    fullMs: () => (fullSinceMs === undefined ? 0 : performance.now() - fullSinceMs),
    roomForClaims: () => Math.max(0, 2 * limit - entries.size),
    async whenFree() {
      while (free() === 0) {
        await freed.promise;
        // Answers of the KMS come together: one read for the room of all of them, not one for each.
        await nextTurn();
      }
    },
    whenFreed: () => freed.promise,
    byMaster: () => {
      const groups = Map.groupBy(entries.values(), ({ master }) => master);
      return new Map([...groups].map(([master, group]) => [master, group.map(({ id }) => id)]));
    },
    async whenIdle() {
      while (entries.size > 0) await freed.promise;
    },
    get size() {
      return entries.size;
    },
  };
}

/** A master id holds no space. */
function keyOf(master: string, entryId: string): string {
  return `${master} ${entryId}`;
}
