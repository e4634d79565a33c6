import type { KubeObject } from './objects.ts';

/** Objects as list, watch and the answers to our own writes show them; keys are `namespace/name`, or the name alone. */
export type Copy<T> = {
  get(key: string): T | undefined;
  entries(): IterableIterator<[string, T]>;
  /** What the watch tells. */
  put(object: KubeObject): void;
  drop(object: KubeObject): void;
  /** The watch has come as far as this version. */
  pass(version: string): void;
  /** What a list says there is. */
  replace(objects: readonly KubeObject[], version: string): void;
  /** What an answer to a write of ours shows: ahead of the watch, or behind it when the answer was slow. */
  note(object: KubeObject): void;
};

export type CopyOptions<T> = { keep: (object: KubeObject) => T; onChange: (key: string) => void };

/** `ahead`: shown by an answer, and the watch is not there yet. */
type Entry<T> = { kept: T; version: string; ahead: boolean };

/**
 * A copy in which an older state never takes the place of a newer one. List and watch tell in the order of versions; an
 * answer may come after the watch has told what somebody else did next, and would undo that here for good, since
 * nothing tells of it again.
 */
export function createCopy<T>({ keep, onChange }: CopyOptions<T>): Copy<T> {
  const store = new Map<string, Entry<T>>();
  let passed = '0';
  const set = (object: KubeObject, ahead = false) => {
    const key = keyOf(object);
    store.set(key, { kept: keep(object), version: object.metadata.resourceVersion, ahead });
    onChange(key);
  };
  const isOutdated = (key: string, version: string) => isNewer(store.get(key)?.version ?? '0', version);
  return {
    get: (key) => store.get(key)?.kept,
    *entries() {
      for (const [key, { kept }] of store) yield [key, kept];
    },
    put(object) {
      if (!isOutdated(keyOf(object), object.metadata.resourceVersion)) set(object);
    },
    drop(object) {
      const key = keyOf(object);
      if (isOutdated(key, object.metadata.resourceVersion)) return;
      if (store.delete(key)) onChange(key);
    },
    pass(version) {
      passed = version;
    },
    replace(objects, version) {
      // Only what was written after the list stands above it: a store that was restored begins at lower versions again.
      const stays = (key: string) => {
        const entry = store.get(key);
        return entry?.ahead === true && isNewer(entry.version, version);
      };
      const keys = new Set(objects.map(keyOf));
      passed = version;
      for (const object of objects) if (!stays(keyOf(object))) set(object);
      for (const key of [...store.keys()]) {
        if (keys.has(key) || stays(key)) continue;
        store.delete(key);
        onChange(key);
      }
      for (const entry of store.values()) entry.ahead = false;
    },
    note(object) {
      if (isNewer(object.metadata.resourceVersion, passed)) set(object, true);
    },
  };
}

function keyOf({ metadata }: KubeObject): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

/** Versions of one resource are whole numbers that grow, as long as they like. */
function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}
