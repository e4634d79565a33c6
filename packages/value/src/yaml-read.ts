import { isAlias, isMap, isScalar, isSeq, Scalar, type YAMLMap } from 'yaml';
import { errorAt, ValueError, type ValueErrorCode } from './errors.ts';
import { readText } from './text.ts';
import { depthLimit, emptyObject, type Limits, type Value } from './value.ts';
import { ALIAS_BUDGET, offsetOf, parseDocumentOf, quotedText } from './yaml-document.ts';
import { AMBIGUOUS, resolvePlain } from './yaml-plain.ts';

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
  const document = parseDocumentOf(text);
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
    return quotedText(reading.text, scalar);
  }
  const value = inContext(reading, at, () => resolvePlain(scalar.source ?? text));
  if (value === AMBIGUOUS) {
    const reason = 'a plain scalar that YAML 1.1 and 1.2 read differently: quote it or write it in full';
    throw fail(reading, 'syntax', reason, at);
  }
  return value;
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

function fail(reading: Reading, code: ValueErrorCode, reason: string, offset: number): ValueError {
  return errorAt(code, reason, reading.text, offset);
}
