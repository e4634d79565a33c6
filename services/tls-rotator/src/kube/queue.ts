/**
 * Work by key: one key is never worked on twice at once, a key that is asked for again meanwhile is worked on once
 * more, and keys are taken in the order in which they were asked for.
 */
export type KeyedQueue = AsyncDisposable & {
  add(key: string): void;
  /** Asks for a key later; an earlier wish stands. */
  addAfter(key: string, delayMs: number): void;
  /** Keys that wait or are worked on. */
  size(): number;
};

/** @param work must not throw; `stop` says that the queue is being ended */
export function createKeyedQueue(
  work: (key: string, stop: AbortSignal) => Promise<void>,
  { workers }: { workers: number },
): KeyedQueue {
  const waiting = new Set<string>();
  const busy = new Set<string>();
  const again = new Set<string>();
  const timers = new Map<string, { timer: NodeJS.Timeout; atMs: number }>();
  const running = new Set<Promise<void>>();
  const stopped = new AbortController();

  const start = (key: string) => {
    waiting.delete(key);
    busy.add(key);
    const job = work(key, stopped.signal).finally(() => {
      busy.delete(key);
      running.delete(job);
      if (again.delete(key)) waiting.add(key);
      pump();
    });
    running.add(job);
  };
  const pump = () => {
    for (const key of waiting) {
      if (busy.size >= workers || stopped.signal.aborted) return;
      start(key);
    }
  };
  const add = (key: string) => {
    if (busy.has(key)) again.add(key);
    else waiting.add(key);
    pump();
  };
  return {
    add,
    addAfter(key, delayMs) {
      // Work that ends while the queue is being ended would keep the process alive.
      if (stopped.signal.aborted) return;
      const atMs = performance.now() + delayMs;
      const there = timers.get(key);
      if (there !== undefined && there.atMs <= atMs) return;
      clearTimeout(there?.timer);
      const timer = setTimeout(() => {
        timers.delete(key);
        add(key);
      }, delayMs);
      timers.set(key, { timer, atMs });
    },
    size: () => waiting.size + busy.size,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      for (const { timer } of timers.values()) clearTimeout(timer);
      waiting.clear();
      again.clear();
      await Promise.all(running);
    },
  };
}
