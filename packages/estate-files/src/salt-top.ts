import type { Value, ValueObject } from '@colonnade/value';
import { fitsGlob } from './globs.ts';
import type { Problem } from './problem.ts';
import { isMapping } from './read-sls.ts';

/** What a target of a top file stands for, with the names of its SLS files in their order. */
export type TopEntry = { match: string; names: readonly string[] } & (
  | { kind: 'root' }
  | { kind: 'minions'; ids: readonly string[] }
  /** `takes`: whether a minion is meant, where its id alone says that. */
  | { kind: 'collection'; id: string; takes: ((minion: string) => boolean) | undefined }
);

export type TopOptions = {
  collections?: Readonly<Record<string, string>>;
  environment?: string;
};

export const TOP = 'top.sls';
/** Without any of a glob's or a compound's characters. */
const MINION_ID = /^[A-Za-z0-9_.-]+$/u;
const GLOB = /^[A-Za-z0-9_.*?[\]!-]+$/u;

/** The targets of a top file in their order. What cannot be taken is among the problems, with its line. */
export function readTop(
  top: ValueObject,
  text: string,
  { collections = {}, environment = 'base' }: TopOptions,
  problems: Problem[],
): readonly TopEntry[] {
  const refuse = (what: string, reason: string) => {
    problems.push({ file: TOP, ...lineOf(text, what), reason });
    return [];
  };
  for (const other of Object.keys(top).filter((name) => name !== environment)) {
    refuse(other, `another environment, ${JSON.stringify(other)}: read it on its own`);
  }
  const targets = top[environment];
  if (!isMapping(targets)) {
    return refuse(environment, `no targets for the environment ${JSON.stringify(environment)}`);
  }
  for (const named of Object.keys(collections)) {
    if (!Object.hasOwn(targets, named)) refuse('', `there is no target ${JSON.stringify(named)}`);
  }
  return Object.entries(targets).flatMap(([match, list]) => {
    const read = readTarget(match, list, collections);
    return typeof read === 'string' ? refuse(match, `the target ${JSON.stringify(match)} ${read}`) : [read];
  });
}

/** @returns what is wrong with it, instead */
function readTarget(
  match: string,
  list: Value,
  collections: Readonly<Record<string, string>>,
): TopEntry | string {
  if (!Array.isArray(list)) return 'has no list of SLS files';
  const names = list.filter((item) => typeof item === 'string');
  const options = list.filter(isMapping);
  if (names.length + options.length < list.length) return 'has something in its list that is no name';
  const unknown = options.flatMap((one) => Object.keys(one)).find((key) => key !== 'match');
  if (unknown !== undefined) return `has the option ${JSON.stringify(unknown)}, which is not read here`;
  const matcher = options.at(-1)?.match ?? 'compound';
  const isPlain = matcher === 'compound' || matcher === 'glob';
  if (Object.hasOwn(collections, match)) {
    const isGlob = isPlain && GLOB.test(match);
    const takes = isGlob ? (minion: string) => fitsGlob(match, minion) : undefined;
    return { match, names, kind: 'collection', id: collections[match] as string, takes };
  }
  if (isPlain && match === '*') return { match, names, kind: 'root' };
  const ids = matcher === 'list' ? match.split(',') : [match];
  if ((isPlain || matcher === 'list') && ids.every((id) => MINION_ID.test(id))) {
    return { match, names, kind: 'minions', ids };
  }
  return 'is neither "*" nor minions by name: name a collection for it';
}

/** The first line in which it stands. */
function lineOf(text: string, what: string): { line?: number } {
  const found = what === '' ? -1 : text.split('\n').findIndex((line) => line.includes(what));
  return found < 0 ? {} : { line: found + 1 };
}
