import type { ApiClient } from '@colonnade/api-client';
import { ColonnadeError } from '@colonnade/contracts';
import type { Value, ValueObject } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import type { OptionSpec } from '../table/command.ts';
import { asList, asObject, textOf } from './view.ts';

/** Says what a pillar hangs on. */
export const TARGET_OPTIONS = {
  root: { help: 'the target is the root: every minion' },
  collection: { value: 'ID', help: 'the target is this collection' },
  minion: { value: 'ID', help: 'the target is this minion (with --master)' },
  master: { value: 'ID', help: 'master of the minion' },
} satisfies Record<string, OptionSpec>;

/** How the options of a target are called, for those who are told that one is missing. */
const TARGET_NAMES = { root: '--root', collection: '--collection', minion: '--minion', master: '--master' };
export const DESTINATION_NAMES: typeof TARGET_NAMES = {
  root: '--to-root',
  collection: '--to-collection',
  minion: '--to-minion',
  master: '--to-master',
};

export type TargetOptions = {
  root: boolean;
  collection: string | undefined;
  minion: string | undefined;
  master: string | undefined;
};

/** For commands that take a pid, or a name together with a target. */
export const PILLAR_ARGUMENT = {
  pillar: { help: 'pid; or the name, together with --root, --collection or --minion' },
} as const;

/** The fields of a target as `POST /pillars` has them; undefined when none is given. @throws ColonnadeError `misconfigured` */
export function readTarget(options: TargetOptions, names = TARGET_NAMES): ValueObject | undefined {
  const { root, collection, minion, master } = options;
  const given = [root, collection !== undefined, minion !== undefined].filter(Boolean).length;
  if (given > 1) throw usageError(`give one target: ${choicesOf(names)}`);
  if (master !== undefined && minion === undefined)
    throw usageError(`${names.master} goes with ${names.minion}`);
  if (root) return { tgt_type: 'root' };
  if (collection !== undefined) return { tgt_type: 'collection', collection_id: collection };
  if (minion === undefined) return undefined;
  if (master === undefined)
    throw usageError(`${names.minion} needs ${names.master}: the id alone does not name it`);
  return { tgt_type: 'minion', minion_id: minion, master };
}

/** @throws ColonnadeError `misconfigured` without a target */
export function requireTarget(options: TargetOptions, names = TARGET_NAMES): ValueObject {
  const target = readTarget(options, names);
  if (target !== undefined) return target;
  throw usageError(`say what it hangs on: ${choicesOf(names)}`);
}

function choicesOf({ root, collection, minion, master }: typeof TARGET_NAMES): string {
  return `${root}, ${collection} ID, or ${minion} ID with ${master} ID`;
}

/** The pid of a pillar given by pid, or by name and target. @throws ColonnadeError `not_found` */
export async function resolvePid(api: ApiClient, pillar: string, options: TargetOptions): Promise<string> {
  const target = readTarget(options);
  if (target === undefined) return pillar;
  const found =
    target.tgt_type === 'collection'
      ? await findInCollection(api, textOf(target.collection_id), pillar)
      : await findInList(api, { ...target, name: pillar });
  if (found !== undefined) return found;
  const why = `there is no pillar of this name on ${describe(target)}`;
  throw new ColonnadeError('not_found', `${why}; one that was deleted is named by its pid`);
}

export function pathOf(pid: string): string {
  return `/pillars/${encodeURIComponent(pid)}`;
}

async function findInList(api: ApiClient, filter: ValueObject): Promise<string | undefined> {
  const page = asObject((await api.call('POST', '/pillars/list', { ...filter, limit: 1n })).value);
  const [first] = asList(page.items);
  return first === undefined ? undefined : textOf(asObject(first).pid);
}

async function findInCollection(api: ApiClient, id: string, name: string): Promise<string | undefined> {
  const { value } = await api.call('GET', `/collections/${encodeURIComponent(id)}`);
  const { pillars, pillars_more } = asObject(value);
  const found = asList(pillars).find((one: Value) => asObject(one).name === name);
  if (found !== undefined) return textOf(asObject(found).pid);
  if (pillars_more !== true) return undefined;
  throw new ColonnadeError('conflict', 'the collection has more pillars than its page names: give the pid');
}

function describe({ tgt_type, collection_id, minion_id, master }: ValueObject): string {
  if (tgt_type === 'root') return 'the root';
  if (tgt_type === 'collection') return `collection ${textOf(collection_id)}`;
  return `minion ${textOf(minion_id)} of ${textOf(master)}`;
}
