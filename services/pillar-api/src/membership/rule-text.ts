import { type CollectionRule, decodeTree, encodeTree, zCollectionRule } from '@colonnade/contracts';
import { canonicalText, parseValue } from '@colonnade/value';

/** A rule as the store keeps it: canonical JSON; null: there is none. */
export function ruleText<T extends CollectionRule | null>(rule: T): string | Extract<T, null> {
  return rule === null ? (null as Extract<T, null>) : canonicalText(encodeTree(zCollectionRule, rule));
}

/** The same, read. It was checked on its way in. */
export function readRule(text: string): CollectionRule {
  return decodeTree(zCollectionRule, parseValue(text));
}
