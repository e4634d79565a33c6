import type { BulkRecord } from '@colonnade/contracts';
import { type Value, type ValueObject, valuesEqual } from '@colonnade/value';
import { addPillars, type Target } from './minion-files.ts';
import type { Converted, Note, Problem } from './problem.ts';
import { isMapping } from './read-sls.ts';
import { createRenderer, type Files } from './render.ts';
import { readTop, TOP, type TopEntry, type TopOptions } from './salt-top.ts';

export type SaltTreeOptions = TopOptions & {
  /** Of the minions that the top file names. */
  master: string;
  /** Targets of the top file that stand for a collection, with its id. It must be in the estate. */
  collections?: Readonly<Record<string, string>>;
  /** Globs of the names of pillars that are to be sealed. */
  secrets?: readonly string[];
  /** The one that is read; `base` unless said. */
  environment?: string;
};

/**
 * Reads a pillar tree; see the README for what of it. Each minion that is named gets what Salt would give it: where that is
 * not what all minions and the collections it is put into get, as a pillar of its own.
 */
export function recordsFromSaltTree(files: Files, options: SaltTreeOptions): Converted {
  const problems: Problem[] = [];
  const notes: Note[] = [];
  const records: BulkRecord[] = [];
  const sealed = new Set<string>();
  const renderer = createRenderer(files, problems);
  const top = renderer.read(TOP);
  const entries = top === undefined ? [] : readTop(top, files.get(TOP) ?? '', options, problems);
  const render = (wanted: (entry: TopEntry) => boolean) =>
    renderer.render(entries.filter(wanted).flatMap(({ names }) => names));
  const { master, secrets = [] } = options;
  const add = (target: Target, pillars: ValueObject) =>
    addPillars(records, problems, TOP, target, pillars, { secrets, sealed });

  const minions = [...new Set(entries.flatMap((entry) => (entry.kind === 'minions' ? entry.ids : [])))];
  if (minions.length > 0) records.push({ kind: 'master', id: master });
  for (const id of minions) {
    const collections = collectionsOf(entries, (entry) => takes(entry, id));
    records.push({ kind: 'minion', master, id, ...(collections.length > 0 ? { collections } : {}) });
  }
  const root = render(({ kind }) => kind === 'root');
  add({ tgt_type: 'root' }, root);
  const ofCollections = new Map<string, ValueObject>();
  for (const id of collectionsOf(entries, () => true)) {
    const isMeant = (entry: TopEntry) => entry.kind === 'collection' && entry.id === id;
    ofCollections.set(
      id,
      differing(
        render((entry) => entry.kind === 'root' || isMeant(entry)),
        root,
      ),
    );
    add({ tgt_type: 'collection', collection_id: id }, ofCollections.get(id) ?? root);
  }
  for (const id of minions) {
    const farther = collectionsOf(entries, (entry) => takes(entry, id)).map((one) => ofCollections.get(one));
    const whole = render((entry) => takes(entry, id));
    add({ tgt_type: 'minion', master, minion_id: id }, differing(whole, overlaid(root, ...farther)));
  }
  noteMerges(entries, renderer.render, notes);
  return { records, problems, notes, sealed };
}

function collectionsOf(entries: readonly TopEntry[], wanted: (entry: TopEntry) => boolean): string[] {
  const ids = entries.filter(wanted).flatMap((entry) => (entry.kind === 'collection' ? [entry.id] : []));
  return [...new Set(ids)];
}

/** As a merge here does it: a nearer value replaces a farther one whole. */
function overlaid(...scopes: readonly (ValueObject | undefined)[]): ValueObject {
  const entries = scopes.flatMap((scope) => Object.entries(scope ?? {}));
  return Object.setPrototypeOf(Object.fromEntries(entries), null) as ValueObject;
}

function takes(entry: TopEntry, minion: string): boolean {
  if (entry.kind === 'minions') return entry.ids.includes(minion);
  return entry.kind === 'root' || entry.takes?.(minion) === true;
}

/** What a nearer scope must hold so that with the farther ones it comes to the whole. */
function differing(whole: ValueObject, farther: ValueObject): ValueObject {
  const own = Object.entries(whole).filter(
    ([name, value]) => !Object.hasOwn(farther, name) || !valuesEqual(farther[name] as Value, value),
  );
  return Object.setPrototypeOf(Object.fromEntries(own), null) as ValueObject;
}

/**
 * Of a minion in two collections, or in one whose target does not tell who is meant, Salt merges mappings, and here the
 * nearer one replaces the farther one.
 */
function noteMerges(
  entries: readonly TopEntry[],
  render: (names: readonly string[]) => ValueObject,
  notes: Note[],
): void {
  const scopes = entries.filter(({ kind }) => kind !== 'root');
  for (const [index, later] of scopes.entries()) {
    for (const earlier of scopes.slice(0, index)) {
      if (!mayMeet(earlier, later)) continue;
      const [a, b] = [render(earlier.names), render(later.names)];
      for (const name of Object.keys(b).filter((one) => isMapping(a[one]) && isMapping(b[one]))) {
        const where = `${JSON.stringify(earlier.match)} and ${JSON.stringify(later.match)}`;
        const reason = `${JSON.stringify(name)} is a mapping for ${where}: Salt merges the two, here the nearer one counts`;
        notes.push({ file: TOP, reason });
      }
    }
  }
}

function mayMeet(a: TopEntry, b: TopEntry): boolean {
  if (a.kind === 'collection' && b.kind === 'collection') return a.id !== b.id;
  const collection = [a, b].find((one) => one.kind === 'collection');
  return collection?.kind === 'collection' && collection.takes === undefined;
}
