import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseAllDocuments,
  type YAMLMap,
  type Document as YamlDocument,
} from 'yaml';
import { MAX_DEPTH, type Node, policyError, quote } from './node.ts';
import { resolveScalar } from './yaml-scalar.ts';

export type YamlReading = {
  node: Node;
  /** Keys that a map has twice, as go-yaml tells it: `line 7: key "level" already set in map`. */
  duplicates: readonly string[];
  /** Documents after the first, which Kubernetes never looks at. */
  ignoredDocuments: number;
};

type Reading = {
  document: YamlDocument;
  lines: LineCounter;
  duplicates: string[];
  open: Set<unknown>;
  nodes: number;
  aliased: number;
  aliasDepth: number;
};

/**
 * Reads the first YAML document as Kubernetes does: go-yaml 2, then JSON. Of two equal keys the last counts, keys come
 * out sorted, `yes` is true, merge keys are merged where they stand.
 * @throws ColonnadeError `misconfigured` with line and column
 */
export function readYaml(text: string): YamlReading {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    version: '1.1',
    schema: 'failsafe',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'error',
    lineCounter: lines,
  });
  const [document, ...others] = 'empty' in documents ? [] : documents;
  if (document === undefined) return { node: { kind: 'null' }, duplicates: [], ignoredDocuments: 0 };
  const directives = document.warnings.filter(({ code }) => code === 'BAD_DIRECTIVE');
  const [fault] = [...document.errors, ...directives];
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0]);
    throw policyError(
      `not valid YAML: ${fault.code.toLowerCase().replaceAll('_', ' ')}`,
      `line ${line} column ${col}`,
      fault,
    );
  }
  const counts = { nodes: 0, aliased: 0, aliasDepth: 0 };
  const reading = { document: document as YamlDocument, lines, duplicates: [], open: new Set(), ...counts };
  const node = readNode(reading, document.contents, 0);
  checkFinite(node);
  return { node, duplicates: reading.duplicates, ignoredDocuments: others.length };
}

/** There is no JSON for infinity, and Kubernetes goes by way of JSON. Of two equal keys only the last is looked at. */
function checkFinite(node: Node): void {
  if (node.kind === 'number' && node.text === 'NaN') throw policyError('a number that is not finite');
  if (node.kind === 'list') for (const item of node.items) checkFinite(item);
  if (node.kind === 'map') for (const [, value] of node.entries) checkFinite(value);
}

function readNode(reading: Reading, node: unknown, depth: number): Node {
  countNode(reading);
  const { anchor = 'a' } = (node ?? {}) as { anchor?: string };
  if (!/^[\w-]+$/u.test(anchor))
    throw policyError('an anchor of other than letters and digits', placeOf(reading, node));
  if (depth > MAX_DEPTH) throw policyError(`more than ${MAX_DEPTH} levels`, placeOf(reading, node));
  if (isAlias(node)) return readAlias(reading, node, depth);
  if (isSeq(node)) {
    return within(reading, node, () => ({
      kind: 'list',
      items: node.items.map((item) => readNode(reading, item, depth + 1)),
    }));
  }
  if (isMap(node)) return within(reading, node, () => readMap(reading, node, depth));
  return isScalar(node) ? readScalar(reading, node) : { kind: 'null' };
}

/** go-yaml's bound on aliases: of a thousand nodes and more, no more than 99 in 100 may come from them. */
function countNode(reading: Reading): void {
  reading.nodes += 1;
  if (reading.aliasDepth > 0) reading.aliased += 1;
  if (reading.aliased > 100 && reading.nodes > 1000 && reading.aliased / reading.nodes > 0.99) {
    throw policyError('the document grows beyond reason by its aliases');
  }
  if (reading.nodes > 400_000) throw policyError('the document holds more than 400,000 nodes');
}

function within(reading: Reading, node: object, read: () => Node): Node {
  if (reading.open.has(node)) throw policyError('an anchor contains itself', placeOf(reading, node));
  reading.open.add(node);
  const result = read();
  reading.open.delete(node);
  return result;
}

function readAlias(reading: Reading, alias: Alias, depth: number): Node {
  const target = alias.resolve(reading.document);
  if (target === undefined) throw policyError('an unknown anchor', placeOf(reading, alias));
  reading.aliasDepth += 1;
  const node = readNode(reading, target, depth + 1);
  reading.aliasDepth -= 1;
  return node;
}

function readMap(reading: Reading, map: YAMLMap, depth: number): Node {
  const values = new Map<string, Node>();
  fillMap(reading, map, values, depth);
  const entries = [...values].map(([key, value]) => [key.slice(key.indexOf(':') + 1), value] as const);
  entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return { kind: 'map', entries };
}

function fillMap(reading: Reading, map: YAMLMap, values: Map<string, Node>, depth: number): void {
  for (const pair of map.items) {
    if (isMergeKey(pair.key)) {
      mergeInto(reading, pair.value, values, depth);
      continue;
    }
    const key = readKey(reading, pair.key, depth);
    const value = readNode(reading, pair.value, depth + 1);
    if (values.has(key.id)) {
      reading.duplicates.push(`line ${lineOf(reading, pair)}: key ${key.shown} already set in map`);
    }
    values.set(key.id, value);
  }
}

function isMergeKey(key: unknown): boolean {
  return (
    isScalar(key) && key.value === '<<' && (key.type === 'PLAIN' || key.tag === 'tag:yaml.org,2002:merge')
  );
}

function mergeInto(reading: Reading, value: unknown, values: Map<string, Node>, depth: number): void {
  if (isSeq(value)) {
    // Backwards: the earlier ones of the list win.
    for (const item of value.items.toReversed())
      mergeInto(reading, mapOnly(reading, item), values, depth + 1);
    return;
  }
  const target = isAlias(value) ? value.resolve(reading.document) : value;
  countNode(reading);
  if (!isMap(target)) throw policyError('<< needs a map or a list of maps', placeOf(reading, value));
  within(reading, target, () => {
    fillMap(reading, target, values, depth + 1);
    return { kind: 'null' };
  });
}

function mapOnly(reading: Reading, item: unknown): unknown {
  const target = isAlias(item) ? item.resolve(reading.document) : item;
  if (isMap(target)) return item;
  throw policyError('<< needs a map or a list of maps', placeOf(reading, item));
}

/** A key as text, the way its kind is written in JSON. Its id keeps 1 and "1" apart, which are two keys to go-yaml. */
function readKey(reading: Reading, key: unknown, depth: number): { id: string; shown: string } {
  const node = readNode(reading, key, depth + 1);
  if (node.kind === 'string') return { id: `string:${node.value}`, shown: quote(node.value) };
  if (node.kind === 'number') return { id: `number:${node.text}`, shown: node.text };
  if (node.kind === 'bool') return { id: `bool:${node.value}`, shown: String(node.value) };
  throw policyError('a key that is no text', placeOf(reading, key));
}

const CORE_TAGS = ['str', 'int', 'float', 'bool', 'null', 'timestamp'].map((t) => `tag:yaml.org,2002:${t}`);

function readScalar(reading: Reading, node: { value: unknown; type?: unknown; tag?: string }): Node {
  const text = String(node.value ?? '');
  const { tag } = node;
  if (tag === 'tag:yaml.org,2002:binary') {
    return { kind: 'string', value: Buffer.from(text, 'base64').toString('utf8') };
  }
  if (tag === 'tag:yaml.org,2002:str') return { kind: 'string', value: text };
  if (tag === undefined ? node.type !== 'PLAIN' : !CORE_TAGS.includes(tag)) {
    return { kind: 'string', value: text };
  }
  const scalar = resolveScalar(text);
  if (tag !== undefined) checkTag(reading, node, tag, scalar.kind);
  if (scalar.kind === 'string') return { kind: 'string', value: text };
  if (scalar.kind === 'int') return { kind: 'number', text: scalar.value.toString() };
  if (scalar.kind !== 'float') return scalar;
  return { kind: 'number', text: String(scalar.value) };
}

function checkTag(reading: Reading, node: unknown, tag: string, kind: string): void {
  const wanted = tag.slice(tag.lastIndexOf(':') + 1);
  if (wanted === kind || (wanted === 'float' && kind === 'int')) return;
  if (wanted === 'timestamp' && kind === 'string') return;
  throw policyError(`a ${kind} that is tagged !!${wanted}`, placeOf(reading, node));
}

function lineOf(reading: Reading, pair: Pair): number {
  const at = offsetOf(pair.value) ?? offsetOf(pair.key) ?? 0;
  return reading.lines.linePos(at).line;
}

function offsetOf(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | null)?.range?.[0];
}

function placeOf(reading: Reading, node: unknown): string {
  const { line, col } = reading.lines.linePos(offsetOf(node) ?? 0);
  return `line ${line} column ${col}`;
}
