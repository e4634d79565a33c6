import type { ApiClient } from '@colonnade/embedded';
import { fromPlain, type Value, valuesEqual } from '@colonnade/value';
import { writeEstate } from '../../support/stack.ts';
import type { ValueId } from '../history.ts';

/** A place where one pillar can be, and who sees it. */
export type Register = {
  key: string;
  name: string;
  target: Record<string, string>;
  isSecret: boolean;
  /** Never deleted, so that it can be found by its pid alone: the list leaves pillars of collections out. */
  fixed: boolean;
  /** `master/minion`. */
  seenBy: readonly string[];
};

export const MASTERS = ['m1', 'm2'] as const;
/** Stands in no other place than the values of secrets. */
export const canaryOf = (seed: number): string => `plaintext-canary-${seed.toString(36)}-äß`;

const WEB1 = 'm1/web';
const WEB2 = 'm2/web';
/** The minion whose membership changes. */
export const ROAMER = 'm1/roam';
export const MEMBERSHIP = `member ${ROAMER}`;
export const ROAM = ['c0', 'c1', 'c2', 'c3'] as const;
export const MINIONS = [WEB1, WEB2, ROAMER] as const;

const root = { tgt_type: 'root' };
const minion = (name: string) => {
  const [master, minion_id] = name.split('/') as [string, string];
  return { tgt_type: 'minion', master, minion_id };
};

function register(
  key: string,
  target: Record<string, string>,
  seenBy: readonly string[],
  more: { isSecret?: boolean; fixed?: boolean } = {},
): Register {
  const name = key.slice(key.lastIndexOf(' ') + 1);
  return { key, name, target, seenBy, isSecret: more.isSecret ?? false, fixed: more.fixed ?? false };
}

export const REGISTERS: readonly Register[] = [
  register('root plain_0', root, MINIONS),
  register('root plain_1', root, MINIONS),
  register('root secret_0', root, MINIONS, { isSecret: true }),
  register(`${WEB1} own_0`, minion(WEB1), [WEB1]),
  register(`${WEB1} own_1`, minion(WEB1), [WEB1]),
  register(`${WEB1} own_secret`, minion(WEB1), [WEB1], { isSecret: true }),
  register(`${WEB2} own_0`, minion(WEB2), [WEB2]),
  register(`${WEB2} own_secret`, minion(WEB2), [WEB2], { isSecret: true }),
  register('tree tuned', { tgt_type: 'collection', collection_id: 'tree' }, [WEB1, WEB2], { fixed: true }),
];

export const FIXED_START: ValueId = 'start';

/** The value that goes by this name: every kind of JSON in it, and its name twice, so that a torn one shows. */
export function valueNamed(id: ValueId, canary: string | undefined): Value {
  const rest = { id, text: 'дежурный "24/7"\n', list: [null, true, { again: id }] };
  return {
    ...(fromPlain(rest) as Record<string, Value>),
    // As a Value the first is the float 1.0, the second an integer.
    ...{ float: 1.0, whole: 1n },
    ...(canary === undefined ? {} : { secret: `${canary} ${id}` }),
  };
}

/** @returns the name of a value; undefined when it is none of ours, or not whole */
export function readValue(value: Value | undefined, canary: string | undefined): ValueId | undefined {
  const id = (value as Record<string, Value> | null | undefined)?.id;
  if (typeof id !== 'string' || value === undefined) return undefined;
  return valuesEqual(value, valueNamed(id, canary)) ? id : undefined;
}

/** Makes what the run stands on. @returns the pid of each fixed register */
export async function makeEstate(api: ApiClient): Promise<ReadonlyMap<string, string>> {
  const write = writeEstate(api);
  await write.collection('tree');
  await write.collection('leaf', 'tree');
  for (const id of ROAM) {
    await write.collection(id);
    await write.pillar({ tgt_type: 'collection', collection_id: id }, 'from', id);
  }
  for (const name of [WEB1, WEB2]) {
    const { master, minion_id } = minion(name);
    await write.minion(master, minion_id, ['leaf']);
  }
  const { master, minion_id } = minion(ROAMER);
  await write.minion(master, minion_id, [ROAM[0]]);
  const pids = new Map<string, string>();
  for (const { key, target, name, fixed } of REGISTERS) {
    if (fixed) pids.set(key, (await write.pillar(target, name, valueNamed(FIXED_START, undefined))).pid);
  }
  return pids;
}
