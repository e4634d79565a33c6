import { isAlias, isMap, isScalar, isSeq, parseDocument, Scalar, type YAMLMap } from 'yaml';
import { errorAt, ValueError, type ValueErrorCode } from './errors.ts';
import { readText } from './text.ts';
import { depthLimit, emptyObject, type Limits, type Value } from './value.ts';
import { AMBIGUOUS, resolvePlain } from './yaml-plain.ts';

/** Nodes and characters that all aliases of a text together may add. */
const ALIAS_BUDGET = 100_000;

/** Not printable, or (CR alone, NEL, LS, PS) a line break to YAML 1.1 or 1.2 and not to the other. */
const REFUSED_CHARACTER = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\r(?!\n)/;

interface Reading {
  readonly text: string;
  readonly maxDepth: number;
  /** Finished values by anchor: an alias inside its own anchor finds nothing. */
  readonly anchors: Map<string, Value>;
  aliasBudget: number;
}

/**
 * Reads one YAML document. Integers and floats keep their kinds as in `parseValue`. Refuses with a `ValueError` that
 * says where: duplicate keys, keys that are not text, tags, directives, merge keys, several documents, numbers out of
 * range, aliases that grow the document beyond reason, what `limits` forbid, and **plain scalars that YAML 1.1 and 1.2
 * do not read alike** (`yes`, `0644`, `1:30`, dates, `1e5`), since no reading of them is certainly the one meant. An
 * empty document is null.
 */
export function valueFromYaml(input: string | Uint8Array, limits?: Limits): Value {
  const text = readText(input, limits);
  const refused = text.search(REFUSED_CHARACTER);
  if (refused >= 0) throw errorAt('syntax', 'a character that has to be written as an escape', text, refused);
  const document = parseDocument(text, {
    schema: 'failsafe',
    version: '1.2',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) {
    const code = problem.code === 'RESOURCE_EXHAUSTION' ? 'too_deep' : 'syntax';
    // The library's own message may quote the text, which may be a secret.
    throw errorAt(
      code,
      `not valid YAML: ${problem.code.toLowerCase().replaceAll('_', ' ')}`,
      text,
      problem.pos[0],
    );
  }
  if (document.directives?.yaml.explicit) throw errorAt('syntax', 'a directive', text, 0);
  const reading: Reading = {
    text,
    maxDepth: depthLimit(limits),
    anchors: new Map(),
    aliasBudget: ALIAS_BUDGET,
  };
  return readNode(reading, document.contents, 0);
}

function readNode(reading: Reading, node: unknown, depth: number): Value {
  if (node === null || node === undefined) return null;
  if (isAlias(node)) return readAlias(reading, node.source, depth, offsetOf(node));
  const value = readContent(reading, node, depth);
  const anchor = (node as { anchor?: string }).anchor;
  if (anchor !== undefined) reading.anchors.set(anchor, value);
  return value;
}

function readContent(reading: Reading, node: unknown, depth: number): Value {
  const at = offsetOf(node);
  if ((node as { tag?: string }).tag !== undefined) throw fail(reading, 'syntax', 'a tag', at);
  if (isScalar(node)) return readScalar(reading, node, at);
  if (depth >= reading.maxDepth)
    throw fail(reading, 'too_deep', `nested deeper than ${reading.maxDepth}`, at);
  if (isMap(node)) return readMap(reading, node, depth + 1);
  if (isSeq(node)) return node.items.map((item) => readNode(reading, item, depth + 1));
  throw fail(reading, 'syntax', 'an unknown node', at);
}

function readMap(reading: Reading, map: YAMLMap, depth: number): Value {
  const object = emptyObject();
  for (const { key: keyNode, value } of map.items) {
    const key = readNode(reading, keyNode, depth);
    const at = offsetOf(keyNode);
    if (typeof key !== 'string') throw fail(reading, 'syntax', 'a key that is not text', at);
    if (object[key] !== undefined) throw fail(reading, 'duplicate_key', 'a key that is there already', at);
    object[key] = readNode(reading, value, depth);
  }
  return object;
}

function readScalar(reading: Reading, scalar: Scalar, at: number): Value {
  const text = String(scalar.value);
  if (scalar.type !== undefined && scalar.type !== Scalar.PLAIN) {
    // Escapes can make what the raw text cannot hold.
    if (!text.isWellFormed()) throw fail(reading, 'lone_surrogate', 'an escaped lone surrogate', at);
    return endsInsideBlock(reading.text, scalar) ? text.replace(/\n$/, '') : text;
  }
  const value = inContext(reading, at, () => resolvePlain(scalar.source ?? text));
  if (value === AMBIGUOUS) {
    const reason = 'a plain scalar that YAML 1.1 and 1.2 read differently: quote it or write it in full';
    throw fail(reading, 'syntax', reason, at);
  }
  return value;
}

/** Whether a block scalar's last line has no line break, which the library adds; YAML 1.2.2 (8.1.1.2) and PyYAML don't. */
function endsInsideBlock(text: string, scalar: Scalar): boolean {
  if (scalar.type !== Scalar.BLOCK_LITERAL && scalar.type !== Scalar.BLOCK_FOLDED) return false;
  return scalar.range?.[1] === text.length && text.slice(text.lastIndexOf('\n') + 1).trim() !== '';
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

function readAlias(reading: Reading, anchor: string, depth: number, at: number): Value {
  const value = reading.anchors.get(anchor);
  if (value === undefined) throw fail(reading, 'syntax', 'an alias without its anchor', at);
  return copy(reading, value, depth, at);
}

/** A copy, so that a change to one place of the value does not show at another. */
function copy(reading: Reading, value: Value, depth: number, at: number): Value {
  reading.aliasBudget -= typeof value === 'string' ? value.length + 1 : 1;
  if (reading.aliasBudget < 0) throw fail(reading, 'too_large', 'aliases that grow the text too much', at);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= reading.maxDepth)
    throw fail(reading, 'too_deep', `nested deeper than ${reading.maxDepth}`, at);
  if (Array.isArray(value)) return value.map((item) => copy(reading, item, depth + 1, at));
  const object = emptyObject();
  for (const [key, item] of Object.entries(value)) {
    reading.aliasBudget -= key.length;
    object[key] = copy(reading, item, depth + 1, at);
  }
  return object;
}

function offsetOf(node: unknown): number {
  return (node as { range?: [number, number, number] | null } | null)?.range?.[0] ?? 0;
}

function fail(reading: Reading, code: ValueErrorCode, reason: string, offset: number): ValueError {
  return errorAt(code, reason, reading.text, offset);
}
