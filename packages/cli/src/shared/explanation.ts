import { canonicalText, type ValueObject } from '@colonnade/value';
import { escapeLine } from '../terminal/escape.ts';
import { asList, asObject, targetText, textOf } from './view.ts';

/** An explanation as a tree: each key, the scope that won, and those it overrode, nearest first. */
export function explanationLines(found: ValueObject, only: string | undefined): string[] {
  const { minion_id, master, pillarenv, clock, at, rule_collections: ruled } = found;
  const keys = asList(found.keys).map(asObject);
  const wanted = keys.filter(({ name }) => only === undefined || name === only);
  const when = at === undefined ? textOf(clock) : `${textOf(at)} (memberships and tasks of ${textOf(clock)})`;
  const head = `${textOf(minion_id)} of ${textOf(master)}, clock ${when}, pillarenv ${textOf(pillarenv)}`;
  const lines = wanted.flatMap((key, i) => keyLines(key, i === wanted.length - 1));
  const none = only === undefined ? '(it gets no pillar)' : `(it does not get "${only}")`;
  const byRule = ruled === undefined ? [] : [`a member by rule of ${asList(ruled).map(textOf).join(', ')}`];
  return [head, ...byRule, ...(lines.length > 0 ? lines : [`└─ ${none}`])].map(escapeLine);
}

function keyLines(key: ValueObject, last: boolean): string[] {
  const { name, value, is_secret, purged, winner, overrode } = key;
  const [branch, trunk] = last ? ['└─', '  '] : ['├─', '│ '];
  const plain = purged === true ? '(purged)' : canonicalText(value ?? null);
  const shown = is_secret === true ? textOf(value) : plain;
  const origins = [
    ['won ', asObject(winner)] as const,
    ...asList(overrode).map((one) => ['over', asObject(one)] as const),
  ];
  return [
    `${branch} ${textOf(name)} = ${shown}`,
    ...origins.map(([what, origin], i) => {
      const leaf = i === origins.length - 1 ? '└─' : '├─';
      return `${trunk} ${leaf} ${what} ${targetText(origin)}  ${pidText(origin)}`;
    }),
  ];
}

function pidText({ pid, change, version }: ValueObject): string {
  if (version !== undefined) return `${textOf(pid)} clock ${textOf(version)}`;
  if (change === undefined) return textOf(pid);
  return pid === null ? '(not saved)' : `${textOf(pid)} (not saved)`;
}
