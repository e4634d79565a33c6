import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, Scalar, type YAMLMap } from 'yaml';
import { errorAt, ValueError, type ValueErrorCode } from './errors.ts';
import { readText } from './text.ts';
import { depthLimit, emptyObject, type Limits, type Value } from './value.ts';
import { ALIAS_BUDGET, offsetOf, parseDocumentOf, quotedText } from './yaml-document.ts';
import { DEFAULT, MERGE, resolveSaltPlain } from './yaml-salt-plain.ts';

interface Reading {
  readonly text: string;
  readonly maxDepth: number;
  /** What each alias stands for: resolved in the order of the text, since merges change the order of reading. */
  readonly targets: ReadonlyMap<Alias, Node>;
  aliasBudget: number;
  /** Inside how many aliases and merges the reading is: what they repeat counts against the budget. */
  repeating: number;
}

type Pair = { key: Node | null; value: Node | null };

const TEXT_TAG = 'tag:yaml.org,2002:str';
/** What libyaml, and so Salt, takes for the name of an anchor. */
const ANCHOR = /^[A-Za-z0-9_-]+$/;

/**
 * Reads one YAML document to the value that Salt's own loader (`salt.utils.yaml`) makes of it: PyYAML's YAML 1.1 with
 * `0644` as 644, dates as text, merge keys, and keys given twice refused. What JSON cannot hold is refused with its
 * place, and never becomes something else: keys that are no text (`80: x`, `on: x`), infinities, integers past 64 bits,
 * tags other than `!!str`. So are directives other than none, several documents, and aliases inside their own anchor.
 * An empty document is null. The price of one library for both dialects: about a megabyte a second.
 * @throws ValueError that says where
 */
export function valueFromSaltYaml(input: string | Uint8Array, limits?: Limits): Value {
  const text = readText(input, limits);
  const document = parseDocumentOf(text);
  if (document.directives?.yaml.explicit) throw errorAt('syntax', 'a directive', text, 0);
  const contents = document.contents as Node | null;
  const reading: Reading = {
    ...{ text, maxDepth: depthLimit(limits), aliasBudget: ALIAS_BUDGET, repeating: 0 },
    targets: resolveAliases(text, contents),
  };
  return readNode(reading, contents, 0);
}

/** An alias inside its own anchor would never end; an anchor given twice is an error to libyaml. */
function resolveAliases(text: string, root: Node | null): ReadonlyMap<Alias, Node> {
  const targets = new Map<Alias, Node>();
  const anchors = new Map<string, Node | undefined>();
  const walk = (node: unknown) => {
    if (node === null || node === undefined) return;
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target === undefined) throw errorAt('syntax', 'an alias without its anchor', text, offsetOf(node));
      targets.set(node, target);
      return;
    }
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) {
      if (!ANCHOR.test(anchor)) throw errorAt('syntax', 'an anchor Salt cannot read', text, offsetOf(node));
      if (anchors.has(anchor)) throw errorAt('syntax', 'an anchor given twice', text, offsetOf(node));
      anchors.set(anchor, undefined);
    }
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        walk(key);
        walk(value);
      }
    } else if (isSeq(node)) {
      for (const item of node.items) walk(item);
    }
    if (anchor !== undefined) anchors.set(anchor, node as Node);
  };
  walk(root);
  return targets;
}

function readNode(reading: Reading, node: Node | null | undefined, depth: number): Value {
  if (node === null || node === undefined) return null;
  if (isAlias(node)) {
    reading.repeating += 1;
    const value = readNode(reading, targetOf(reading, node), depth);
    reading.repeating -= 1;
    return value;
  }
  const at = offsetOf(node);
  if (isScalar(node)) return readScalar(reading, node, at);
  spend(reading, 1, at);
  const { tag } = node as { tag?: string };
  if (tag !== undefined) throw fail(reading, 'syntax', 'a tag', at);
  if (depth >= reading.maxDepth)
    throw fail(reading, 'too_deep', `nested deeper than ${reading.maxDepth}`, at);
  if (isMap(node)) return readMap(reading, node, depth + 1);
  if (isSeq(node)) return node.items.map((item) => readNode(reading, item as Node | null, depth + 1));
  throw fail(reading, 'syntax', 'an unknown node', at);
}

function readMap(reading: Reading, map: YAMLMap, depth: number): Value {
  const object = emptyObject();
  const { merged, own } = flatten(reading, map, depth);
  reading.repeating += 1;
  for (const pair of merged) readPair(reading, object, pair, depth);
  reading.repeating -= 1;
  for (const pair of own) readPair(reading, object, pair, depth);
  return object;
}

function readPair(reading: Reading, object: { [key: string]: Value }, pair: Pair, depth: number): void {
  const at = offsetOf(pair.key);
  const key = readKey(reading, pair.key, depth);
  if (Object.hasOwn(object, key)) throw fail(reading, 'duplicate_key', 'a key that is there already', at);
  object[key] = readNode(reading, pair.value, depth);
}

function readKey(reading: Reading, node: Node | null, depth: number): string {
  if (plainValue(reading, node) === DEFAULT) return '=';
  const key = readNode(reading, node, depth);
  if (typeof key === 'string') return key;
  throw fail(reading, 'syntax', `a key that is ${kindOf(key)}, not text: quote it`, offsetOf(node));
}

function kindOf(value: Exclude<Value, string>): string {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return 'an integer';
  if (typeof value === 'number') return 'a float';
  if (typeof value === 'boolean') return 'a boolean';
  return Array.isArray(value) ? 'a list' : 'an object';
}

/**
 * Takes merge keys apart as Salt does: what is merged comes first, later mappings of a list before earlier ones, and
 * without what the mapping itself has, by the text of the key. A key that two merged mappings have is there twice.
 */
function flatten(reading: Reading, map: YAMLMap, depth: number): { merged: Pair[]; own: Pair[] } {
  if (depth > reading.maxDepth) throw fail(reading, 'too_deep', 'merged too deep', offsetOf(map));
  const own: Pair[] = [];
  const merges: Pair[] = [];
  for (const { key, value } of map.items as unknown as Pair[]) {
    if (plainValue(reading, key) === MERGE) merges.push(...mergedPairs(reading, value, depth));
    else own.push({ key, value });
  }
  if (merges.length === 0) return { merged: merges, own };
  const existing = new Set(own.map(({ key }) => rawText(reading, key)));
  return { merged: merges.filter(({ key }) => !existing.has(rawText(reading, key))), own };
}

function mergedPairs(reading: Reading, value: Node | null, depth: number): Pair[] {
  const node = resolve(reading, value);
  const all = (map: YAMLMap) => {
    const { merged, own } = flatten(reading, map, depth + 1);
    reading.repeating += 1;
    spend(reading, merged.length + own.length, offsetOf(value));
    reading.repeating -= 1;
    return [...merged, ...own];
  };
  if (isMap(node)) return all(node);
  if (!isSeq(node)) throw fail(reading, 'syntax', 'a merge of what is no mapping', offsetOf(value));
  const parts = node.items.map((item) => {
    const map = resolve(reading, item as Node | null);
    if (isMap(map)) return all(map);
    throw fail(reading, 'syntax', 'a merge of what is no mapping', offsetOf(item));
  });
  return parts.reverse().flat();
}

function resolve(reading: Reading, node: Node | null): Node | null {
  return isAlias(node) ? targetOf(reading, node) : node;
}

function targetOf(reading: Reading, alias: Alias): Node {
  const target = reading.targets.get(alias);
  if (target === undefined) throw fail(reading, 'syntax', 'an alias without its anchor', offsetOf(alias));
  return target;
}

/** What a plain scalar without a tag is; undefined for every other node. */
function plainValue(reading: Reading, node: Node | null) {
  const scalar = resolve(reading, node);
  if (!isScalar(scalar) || !isPlain(scalar) || scalar.tag !== undefined) return undefined;
  const text = scalar.source ?? '';
  return text === '<<' ? MERGE : text === '=' ? DEFAULT : undefined;
}

function rawText(reading: Reading, node: Node | null): unknown {
  const scalar = resolve(reading, node);
  return isScalar(scalar) ? textOf(reading, scalar) : scalar;
}

function isPlain(scalar: Scalar): boolean {
  return scalar.type === undefined || scalar.type === Scalar.PLAIN;
}

function textOf(reading: Reading, scalar: Scalar): string {
  return isPlain(scalar) ? (scalar.source ?? '') : quotedText(reading.text, scalar);
}

function readScalar(reading: Reading, scalar: Scalar, at: number): Value {
  const text = textOf(reading, scalar);
  spend(reading, text.length + 1, at);
  if (scalar.tag !== undefined && scalar.tag !== TEXT_TAG) throw fail(reading, 'syntax', 'a tag', at);
  if (!isPlain(scalar) || scalar.tag === TEXT_TAG) {
    // Escapes can make what the raw text cannot hold.
    if (!text.isWellFormed()) throw fail(reading, 'lone_surrogate', 'an escaped lone surrogate', at);
    return text;
  }
  const value = inContext(reading, at, () => resolveSaltPlain(text));
  if (typeof value !== 'symbol') return value;
  throw fail(reading, 'syntax', 'a plain "<<" or "=" that is no key: quote it', at);
}

/** What is read again counts, so that a small text cannot become a large value. */
function spend(reading: Reading, amount: number, at: number): void {
  if (reading.repeating === 0) return;
  reading.aliasBudget -= amount;
  if (reading.aliasBudget < 0) throw fail(reading, 'too_large', 'aliases that grow the text too much', at);
}

/** Gives an error of a check that knows no place the place it was found at. */
function inContext<T>(reading: Reading, at: number, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof ValueError) throw fail(reading, error.code, error.message, at);
    throw error;
  }
}

function fail(reading: Reading, code: ValueErrorCode, reason: string, offset: number): ValueError {
  return errorAt(code, reason, reading.text, offset);
}
