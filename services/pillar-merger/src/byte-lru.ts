/** A map that forgets what was used longest ago, bounded by the bytes its entries are said to take. */
export type ByteLru<K, V> = {
  /** Counts as a use. */
  get(key: K): V | undefined;
  has(key: K): boolean;
  set(key: K, value: V, bytes: number): void;
  delete(key: K): void;
  clear(): void;
  /** Drops what was used longest ago until the rest fits, except for the keys to keep. */
  evict(keep: ReadonlySet<K>): void;
  readonly bytes: number;
  readonly size: number;
};

export function createByteLru<K, V>(maxBytes: number): ByteLru<K, V> {
  // A Map keeps the order of insertion; a use moves the entry to the end.
  const entries = new Map<K, { value: V; bytes: number }>();
  let total = 0;
  const remove = (key: K): void => {
    total -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  };
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    has: (key) => entries.has(key),
    set(key, value, bytes) {
      remove(key);
      entries.set(key, { value, bytes });
      total += bytes;
    },
    delete: remove,
    clear() {
      entries.clear();
      total = 0;
    },
    evict(keep) {
      if (total <= maxBytes) return;
      for (const key of [...entries.keys()]) {
        if (total <= maxBytes) return;
        if (!keep.has(key)) remove(key);
      }
    },
    get bytes() {
      return total;
    },
    get size() {
      return entries.size;
    },
  };
}
