/** Lets everyone who comes while a read is under way share the next one, and never the one that began before. */
export type ReadQueue<K> = {
  /** Waits for a read that begins from now on and covers these keys; `force`: they are read even if cached. */
  join(keys: Iterable<K>, force: boolean): Promise<void>;
};

type Wave<K> = { keys: Set<K>; forced: Set<K>; done: PromiseWithResolvers<void> };

export function createReadQueue<K>(
  readWave: (keys: ReadonlySet<K>, forced: ReadonlySet<K>) => Promise<void>,
): ReadQueue<K> {
  let next: Wave<K> | undefined;
  let busy = false;

  // Starting in the next turn of the event loop lets all requests of one batch into one wave.
  const schedule = (): void => {
    if (busy || next === undefined) return;
    busy = true;
    setImmediate(() => void run());
  };
  const run = async (): Promise<void> => {
    const wave = next;
    next = undefined;
    if (wave !== undefined) await readWave(wave.keys, wave.forced).then(wave.done.resolve, wave.done.reject);
    busy = false;
    schedule();
  };

  return {
    join(keys, force) {
      next ??= newWave();
      for (const key of keys) {
        next.keys.add(key);
        if (force) next.forced.add(key);
      }
      const { promise } = next.done;
      schedule();
      return promise;
    },
  };
}

function newWave<K>(): Wave<K> {
  const done = Promise.withResolvers<void>();
  // Someone who gave up waiting leaves a promise behind that nobody handles.
  done.promise.catch(() => {});
  return { keys: new Set(), forced: new Set(), done };
}
