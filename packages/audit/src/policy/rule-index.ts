import type { AuditAttributes, PolicyRule } from './types.ts';

/** Finds rules by what they ask for. Bit n of a row stands for rule n. */
export type RuleIndex = {
  /** The first rule that the index lets through and `matches` confirms, or -1. */
  findFirst(attributes: AuditAttributes, matches: (rule: number) => boolean): number;
};

type Row = Uint32Array;
/** For one attribute: the rules that ask for a text or for none, and those that ask for none. */
type Column = { byText: ReadonlyMap<string, Row>; rest: Row };

export function createRuleIndex(rules: readonly PolicyRule[]): RuleIndex {
  const words = Math.ceil(rules.length / 32);
  const rowOf = (holds: (rule: PolicyRule) => boolean) => createRow(words, rules, holds);
  const columnOf = (texts: (rule: PolicyRule) => readonly string[]) => createColumn(rules, texts, rowOf);
  const isOfResources = (rule: PolicyRule) => rule.resources.length > 0 || rule.namespaces.length > 0;
  const forResources = rowOf((rule) => isOfResources(rule) || rule.nonResourceURLs.length === 0);
  const forUrls = rowOf((rule) => !isOfResources(rule));
  const users = columnOf((rule) => rule.users);
  const groups = columnOf((rule) => rule.userGroups);
  const verbs = columnOf((rule) => rule.verbs);
  const namespaces = columnOf((rule) => rule.namespaces);
  const apiGroups = columnOf(groupsOf);
  const resources = columnOf(resourcesOf);
  const names = columnOf(namesOf);

  return {
    findFirst(attributes, matches) {
      const { user, isResource } = attributes;
      const ofKind = isResource ? forResources : forUrls;
      const ofUser = user === undefined ? users.rest : rowFor(users, user.name);
      const ofVerb = rowFor(verbs, attributes.verb);
      const ofNamespace = isResource ? rowFor(namespaces, attributes.namespace) : namespaces.rest;
      const ofGroup = isResource ? rowFor(apiGroups, attributes.apiGroup) : apiGroups.rest;
      const ofResource = isResource ? rowFor(resources, combined(attributes)) : resources.rest;
      const ofName = isResource ? rowFor(names, attributes.name) : names.rest;
      for (let word = 0; word < words; word += 1) {
        let bits = bit(ofKind, word) & bit(ofUser, word) & bit(ofVerb, word);
        bits &= bit(ofNamespace, word) & bit(ofGroup, word) & bit(ofResource, word) & bit(ofName, word);
        if (bits !== 0) bits &= groupBits(groups, user?.groups ?? [], word);
        for (; bits !== 0; bits &= bits - 1) {
          const rule = word * 32 + 31 - Math.clz32(bits & -bits);
          if (matches(rule)) return rule;
        }
      }
      return -1;
    },
  };
}

/** The API groups a rule can match; none when it asks for no resources, or for those of every group. */
function groupsOf(rule: PolicyRule): readonly string[] {
  const groups = rule.resources.map(({ group }) => group);
  return groups.includes('*') ? [] : groups;
}

/** The resources a rule can match; none when it takes all of a group, or has a `*`. */
function resourcesOf(rule: PolicyRule): readonly string[] {
  const lists = rule.resources.map(({ resources }) => resources);
  const isOpen = lists.some((list) => list.length === 0 || list.some((text) => text.includes('*')));
  return isOpen ? [] : lists.flat();
}

/** The names a rule can match; none when some of its entries ask for none. */
function namesOf(rule: PolicyRule): readonly string[] {
  const lists = rule.resources.map(({ resourceNames }) => resourceNames);
  return lists.some((list) => list.length === 0) ? [] : lists.flat();
}

/** A resource as policies name it: `pillars`, `pillars/reveal`. */
export function combined({ resource, subresource }: AuditAttributes): string {
  return subresource === '' ? resource : `${resource}/${subresource}`;
}

function createRow(words: number, rules: readonly PolicyRule[], holds: (rule: PolicyRule) => boolean): Row {
  const row = new Uint32Array(words);
  for (const [n, rule] of rules.entries()) {
    if (holds(rule)) row[n >>> 5] = bit(row, n >>> 5) | (1 << (n & 31));
  }
  return row;
}

function createColumn(
  rules: readonly PolicyRule[],
  textsOf: (rule: PolicyRule) => readonly string[],
  rowOf: (holds: (rule: PolicyRule) => boolean) => Row,
): Column {
  const texts = new Set(rules.flatMap(textsOf));
  const rows = [...texts].map((text) => {
    const asksFor = (rule: PolicyRule) => textsOf(rule).length === 0 || textsOf(rule).includes(text);
    return [text, rowOf(asksFor)] as const;
  });
  return { byText: new Map(rows), rest: rowOf((rule) => textsOf(rule).length === 0) };
}

function rowFor(column: Column, text: string): Row {
  return column.byText.get(text) ?? column.rest;
}

/** A user is in several groups; one that a rule asks for is enough. */
function groupBits(column: Column, groups: readonly string[], word: number): number {
  let bits = bit(column.rest, word);
  for (const group of groups) bits |= bit(rowFor(column, group), word);
  return bits;
}

function bit(row: Row, word: number): number {
  return row[word] ?? 0;
}
