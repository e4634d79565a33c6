import type { Entry } from './entry.ts';

/** The entries this merger works on: at most `limit` at once, the rest waits here in order. */
export type InFlight = {
  /** Takes an entry unless it is here already. One that was delivered before goes ahead of those that wait. */
  add(entry: Entry): void;
  has(master: string, entryId: string): boolean;
  /** How many more may come without waiting. */
  free(): number;
  /** How many may be taken over: also when all is busy, since those have waited longest. At most as many again. */
  roomForClaims(): number;
  /** Resolves once something is free. */
  whenFree(): Promise<void>;
  /** Ids by master, for keeping them ours. */
  byMaster(): ReadonlyMap<string, readonly string[]>;
  /** Resolves when nothing is left. */
  whenIdle(): Promise<void>;
  readonly size: number;
};

/** @param handle answers one entry; must not throw */
export function createInFlight(limit: number, handle: (entry: Entry) => Promise<void>): InFlight {
  const entries = new Map<string, Entry>();
  const waiting: Entry[] = [];
  let working = 0;
  let freed = Promise.withResolvers<void>();

  const start = (entry: Entry): void => {
    working += 1;
    void handle(entry).finally(() => {
      working -= 1;
      entries.delete(keyOf(entry.master, entry.id));
      const next = waiting.shift();
      if (next !== undefined) start(next);
      freed.resolve();
      freed = Promise.withResolvers<void>();
    });
  };
  const free = (): number => Math.max(0, limit - entries.size);

  return {
    add(entry) {
      const key = keyOf(entry.master, entry.id);
      if (entries.has(key)) return;
      entries.set(key, entry);
      if (working < limit) start(entry);
      else if (entry.deliveries > 1) waiting.unshift(entry);
      else waiting.push(entry);
    },
    has: (master, entryId) => entries.has(keyOf(master, entryId)),
    free,
    roomForClaims: () => Math.max(0, 2 * limit - entries.size),
    async whenFree() {
      while (free() === 0) await freed.promise;
    },
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
