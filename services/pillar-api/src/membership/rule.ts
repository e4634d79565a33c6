import type { CollectionRule, InventoryFacts, RuleCondition, RuleValue } from '@colonnade/contracts';
import { type Value, valuesEqual } from '@colonnade/value';

/** A minion as rules see it. */
export type Candidate = { master: string; id: string; facts: InventoryFacts };

/**
 * Whether a minion is a member by this rule; pure. A field that the inventory does not tell satisfies `absent` and nothing else, not
 * even `ne`. Of a list any item may hold; for `ne` none may be equal.
 */
export function ruleHolds(rule: CollectionRule, candidate: Candidate): boolean {
  if ('all' in rule) return rule.all.every((part) => ruleHolds(part, candidate));
  if ('any' in rule) return rule.any.some((part) => ruleHolds(part, candidate));
  return conditionHolds(rule, itemsOf(fieldOf(rule.field, candidate)));
}

function conditionHolds(condition: RuleCondition, items: readonly Value[]): boolean {
  if (condition.op === 'absent') return items.length === 0;
  if (items.length === 0) return false;
  switch (condition.op) {
    case 'exists':
      return true;
    case 'eq':
      return items.some((item) => isSame(item, condition.value));
    case 'ne':
      return !items.some((item) => isSame(item, condition.value));
    case 'in':
      return items.some((item) => condition.values.some((value) => isSame(item, value)));
    case 'glob':
      return items.some((item) => typeof item === 'string' && matchesGlob(condition.pattern, item));
  }
}

function isSame(item: Value, value: RuleValue): boolean {
  return valuesEqual(item, value);
}

function itemsOf(value: Value | undefined): readonly Value[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

function fieldOf(field: string, { master, id, facts }: Candidate): Value | undefined {
  const [first, second, ...deeper] = field.split('.');
  if (first === 'minion_id') return id;
  if (first === 'master') return master;
  if (first === 'properties') return propertyOf(facts.properties, [second ?? '', ...deeper]);
  if (first === 'os') return facts.os?.[second as keyof NonNullable<InventoryFacts['os']>];
  return facts[first as 'hostname' | 'ips' | 'agent_type' | 'roles'];
}

function propertyOf(properties: Value | undefined, path: readonly string[]): Value | undefined {
  return path.reduce<Value | undefined>((at, key) => {
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return undefined;
    return Object.hasOwn(at, key) ? at[key] : undefined;
  }, properties);
}

/**
 * `*` stands for any characters, `?` for one, everything else for itself. Goes back to the last `*` only, so it takes at most the product of
 * both lengths, whatever the pattern.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const [wanted, given] = [[...pattern], [...text]];
  let [at, from] = [0, 0];
  let star = -1;
  let resume = 0;
  while (from < given.length) {
    if (wanted[at] === '*') {
      star = at;
      resume = from;
      at += 1;
    } else if (at < wanted.length && (wanted[at] === '?' || wanted[at] === given[from])) {
      at += 1;
      from += 1;
    } else if (star >= 0) {
      at = star + 1;
      resume += 1;
      from = resume;
    } else return false;
  }
  return wanted.slice(at).every((one) => one === '*');
}
