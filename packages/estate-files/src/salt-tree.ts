import type { BulkRecord } from '@colonnade/contracts';
import type { Value, ValueObject } from '@colonnade/value';
import { addPillars, type Target } from './minion-files.ts';
import type { Converted, Note, Problem } from './problem.ts';
import { isMapping, mergeValues, readSls } from './read-sls.ts';

export type SaltTreeOptions = {
  /** Of the minions that the top file names. */
  master: string;
  /** Targets of the top file that stand for a collection, with its id. It must be in the estate. */
  collections?: Readonly<Record<string, string>>;
  /** Names of pillars that are to be sealed. */
  secrets?: readonly string[];
  /** The one that is read; `base` unless said. */
  environment?: string;
};

type Files = ReadonlyMap<string, string>;
type Found = { target: Target; match: string; pillars: ValueObject };

const TOP = 'top.sls';
/** Without any of a glob's or a compound's characters. */
const MINION_ID = /^[A-Za-z0-9_.-]+$/u;

/** Reads a pillar tree; see the README for what of it. */
export function recordsFromSaltTree(files: Files, options: SaltTreeOptions): Converted {
  const problems: Problem[] = [];
  const notes: Note[] = [];
  const records: BulkRecord[] = [];
  const found = readTop(files, options, problems);
  const minions = found.flatMap(({ target }) => (target.tgt_type === 'minion' ? [target.minion_id] : []));
  if (minions.length > 0) records.push({ kind: 'master', id: options.master });
  for (const id of minions) records.push({ kind: 'minion', master: options.master, id });
  for (const { target, pillars } of found) {
    addPillars(records, problems, TOP, target, pillars, options.secrets ?? []);
  }
  noteMerges(found, notes);
  return { records, problems, notes };
}

function readTop(files: Files, options: SaltTreeOptions, problems: Problem[]): Found[] {
  const top = readFile(files, TOP, problems);
  if (top === undefined) return [];
  const environment = options.environment ?? 'base';
  for (const other of Object.keys(top).filter((name) => name !== environment)) {
    problems.push({ file: TOP, reason: `another environment, ${JSON.stringify(other)}: read it on its own` });
  }
  const targets = top[environment];
  if (!isMapping(targets)) {
    problems.push({ file: TOP, reason: `no targets for the environment ${JSON.stringify(environment)}` });
    return [];
  }
  return Object.entries(targets).flatMap(([match, list]) => {
    const target = targetOf(match, list, options, problems);
    if (target === undefined) return [];
    return [{ target, match, pillars: readAll(files, namesIn(list), problems) }];
  });
}

function targetOf(
  match: string,
  list: Value,
  { master, collections = {} }: SaltTreeOptions,
  problems: Problem[],
): Target | undefined {
  const matcher = Array.isArray(list) ? list.find(isMapping)?.match : undefined;
  const isGlob = matcher === undefined || matcher === 'glob';
  if (Object.hasOwn(collections, match)) {
    return { tgt_type: 'collection', collection_id: collections[match] as string };
  }
  if (isGlob && match === '*') return { tgt_type: 'root' };
  if (isGlob && MINION_ID.test(match)) return { tgt_type: 'minion', master, minion_id: match };
  const reason = `the target ${JSON.stringify(match)} is neither "*" nor a minion: name a collection for it`;
  problems.push({ file: TOP, reason });
  return undefined;
}

function namesIn(list: Value): string[] {
  const all = Array.isArray(list) ? list : [list];
  return all.filter((item): item is string => typeof item === 'string');
}

function readAll(files: Files, names: readonly string[], problems: Problem[]): ValueObject {
  let pillars: Value = Object.setPrototypeOf({}, null);
  for (const name of names) pillars = mergeValues(pillars, readState(files, name, problems, []));
  return pillars as ValueObject;
}

/** One SLS with what it includes, which comes first. */
function readState(files: Files, name: string, problems: Problem[], above: readonly string[]): ValueObject {
  const stem = name.replaceAll('.', '/');
  const file = [`${stem}.sls`, `${stem}/init.sls`].find((path) => files.has(path));
  const none = Object.setPrototypeOf({}, null) as ValueObject;
  if (file === undefined || above.includes(name)) {
    const reason = file === undefined ? 'is not in the tree' : 'includes itself';
    problems.push({ file: file ?? above.at(-1) ?? TOP, reason: `the SLS ${JSON.stringify(name)} ${reason}` });
    return none;
  }
  const state = readFile(files, file, problems);
  if (state === undefined) return none;
  const { include = [], ...own } = state;
  if (!Array.isArray(include) || include.some((item) => typeof item !== 'string')) {
    problems.push({ file, reason: 'an include with options (key, defaults): put its pillars in by hand' });
    return none;
  }
  let merged: Value = none;
  for (const included of namesIn(include)) {
    const full = included.startsWith('.') ? relative(name, file, included) : included;
    merged = mergeValues(merged, readState(files, full, problems, [...above, name]));
  }
  return mergeValues(merged, Object.setPrototypeOf(own, null)) as ValueObject;
}

/** `.x` in `a/b.sls` is `a.x`; in `a/b/init.sls` it is `a.b.x`. */
function relative(name: string, file: string, included: string): string {
  const folder = file.endsWith('/init.sls') ? name : name.split('.').slice(0, -1).join('.');
  return folder === '' ? included.slice(1) : `${folder}${included}`;
}

function readFile(files: Files, file: string, problems: Problem[]): ValueObject | undefined {
  const text = files.get(file);
  const read = text === undefined ? [{ file, reason: 'is not in the tree' }] : readSls(file, text);
  if (!Array.isArray(read)) return read;
  problems.push(...read);
  return undefined;
}

/** Salt merges mappings of several targets; a nearer scope here replaces the value of a farther one whole. */
function noteMerges(found: readonly Found[], notes: Note[]): void {
  for (const [index, { match, pillars }] of found.entries()) {
    for (const earlier of found.slice(0, index)) {
      const both = Object.keys(pillars).filter(
        (name) => isMapping(pillars[name]) && isMapping(earlier.pillars[name]),
      );
      for (const name of both) {
        const where = `${JSON.stringify(earlier.match)} and ${JSON.stringify(match)}`;
        const reason = `${JSON.stringify(name)} is a mapping for ${where}: Salt merges the two, here the nearer one counts`;
        notes.push({ file: TOP, reason });
      }
    }
  }
}
