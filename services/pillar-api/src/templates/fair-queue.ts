/** Who waits for the one thread, caller by caller. */
export type FairQueue<T> = {
  readonly length: number;
  /** How much of one caller waits. */
  lengthOf(caller: string): number;
  add(caller: string, item: T): void;
  /** The next one: callers take turns, and what one asked is answered in its order. */
  take(): T | undefined;
  /** Takes one out that will wait no longer. */
  remove(caller: string, item: T): void;
};

/** A queue in which each caller has one place at a time, however much he asks. */
export function createFairQueue<T>(): FairQueue<T> {
  // A map keeps the order in which its keys came: the first is the one whose turn it is.
  const byCaller = new Map<string, T[]>();
  let length = 0;
  let last: string | undefined;
  return {
    get length() {
      return length;
    },
    lengthOf: (caller) => byCaller.get(caller)?.length ?? 0,
    add(caller, item) {
      const his = byCaller.get(caller);
      if (his === undefined) byCaller.set(caller, [item]);
      else his.push(item);
      length += 1;
    },
    take() {
      // What he asked during his turn stands behind those who came meanwhile.
      if (last !== undefined) moveToEnd(byCaller, last);
      const [first] = byCaller;
      last = first?.[0];
      if (first === undefined) return undefined;
      const [caller, items] = first;
      const item = items.shift();
      if (items.length === 0) byCaller.delete(caller);
      length -= 1;
      return item;
    },
    remove(caller, item) {
      const his = byCaller.get(caller) ?? [];
      const at = his.indexOf(item);
      if (at < 0) return;
      his.splice(at, 1);
      length -= 1;
      if (his.length === 0) byCaller.delete(caller);
    },
  };
}

function moveToEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}
