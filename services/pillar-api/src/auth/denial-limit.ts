/**
 * Every denied request leaves a record in the stream AUDIT, and a full stream stops all changes: without a limit,
 * whoever reaches the port, or has a token that may only read, could stop the estate. Counted per source: the address
 * of a stranger, the user of a token. What is allowed is never limited.
 */
export type DenialLimit = AsyncDisposable & {
  /** Counts one denial more. @returns undefined, or the seconds to wait when the source has had its share of this minute */
  count(source: string): number | undefined;
};

/** What was denied without a record in one minute. */
export type Suppressed = { total: number; sources: ReadonlyMap<string, number> };

const WINDOW_MS = 60_000;
/** Sources remembered; beyond that they share one count. */
const MAX_SOURCES = 10_000;
const OTHERS = 'others';

/** @param report told at the end of a minute, and at the end of all, when something was suppressed */
export function createDenialLimit(options: {
  perMinute: number;
  report: (suppressed: Suppressed) => Promise<void> | void;
  nowMs?: () => number;
}): DenialLimit {
  const { perMinute, report, nowMs = () => performance.now() } = options;
  let counts = new Map<string, number>();
  let windowEndsMs = 0;
  let timer: NodeJS.Timeout | undefined;

  const close = async () => {
    clearTimeout(timer);
    timer = undefined;
    const over = [...counts].filter(([, count]) => count > perMinute);
    counts = new Map();
    const sources = new Map(over.map(([source, count]) => [source, count - perMinute]));
    const total = [...sources.values()].reduce((sum, count) => sum + count, 0);
    if (total > 0) await report({ total, sources });
  };
  return {
    count(source) {
      const now = nowMs();
      if (now >= windowEndsMs) {
        void close();
        windowEndsMs = now + WINDOW_MS;
      }
      const key = counts.has(source) || counts.size < MAX_SOURCES ? source : OTHERS;
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      if (count <= perMinute) return undefined;
      timer ??= setTimeout(close, windowEndsMs - now).unref();
      return Math.max(1, Math.ceil((windowEndsMs - now) / 1000));
    },
    [Symbol.asyncDispose]: close,
  };
}
