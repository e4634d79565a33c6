import { type Node, policyError, quote } from './node.ts';

/** A Go type, as far as a policy needs them. */
export type GoType =
  | { kind: 'string' | 'bool' | 'int64' | 'time' | 'raw' }
  | { kind: 'pointer' | 'list' | 'map'; of: GoType }
  | { kind: 'struct'; fields: Readonly<Record<string, GoType>> };

/** A slice with what its array holds beyond its length: Go decodes into that again. */
type Slice = { array: unknown[]; length: number };

export type Decoded = {
  value: unknown;
  /** As Kubernetes' strict decoder tells them: `unknown field "rules[0].levle"`, `duplicate field "rules"`. */
  faults: readonly string[];
};

type Decoding = { faults: Set<string>; path: string };

const MAX_FAULTS = 100;

/**
 * Decodes as Kubernetes' JSON decoder: names are case-sensitive, `null` leaves a text or a struct as it is, and a
 * field that stands there twice is decoded twice **into the same value**, so that lists of structs are merged element
 * by element.
 * @throws ColonnadeError `misconfigured` naming the field that has the wrong type
 */
export function goDecode(type: GoType, node: Node): Decoded {
  const faults = new Set<string>();
  const value = decodeInto({ faults, path: '' }, type, node, undefined);
  return { value: plain(value), faults: [...faults] };
}

function decodeInto(at: Decoding, type: GoType, node: Node, into: unknown): unknown {
  if (node.kind === 'null') return isNullable(type) ? undefined : into;
  switch (type.kind) {
    case 'raw':
      return undefined;
    case 'pointer':
      return decodeInto(at, type.of, node, into);
    case 'struct':
      return decodeStruct(at, type.fields, node, into);
    case 'list':
      return decodeList(at, type.of, node, into);
    case 'map':
      return decodeMap(at, type.of, node, into);
    default:
      return decodeScalar(at, type.kind, node);
  }
}

function isNullable({ kind }: GoType): boolean {
  return kind === 'pointer' || kind === 'list' || kind === 'map' || kind === 'time';
}

function decodeStruct(
  at: Decoding,
  fields: Readonly<Record<string, GoType>>,
  node: Node,
  into: unknown,
): unknown {
  if (node.kind !== 'map') throw wrongType(at, 'a map');
  const target = (into ?? {}) as Record<string, unknown>;
  const seen = new Set<string>();
  for (const [key, value] of node.entries) {
    const inner = { faults: at.faults, path: at.path === '' ? key : `${at.path}.${key}` };
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (field === undefined) {
      addFault(at, 'unknown', inner.path);
      continue;
    }
    if (seen.has(key)) addFault(at, 'duplicate', inner.path);
    seen.add(key);
    target[key] = decodeInto(inner, field, value, target[key]);
  }
  return target;
}

function decodeList(at: Decoding, of: GoType, node: Node, into: unknown): Slice {
  if (node.kind !== 'list') throw wrongType(at, 'a list');
  if (node.items.length === 0) return { array: [], length: 0 };
  const slice = (into as Slice | undefined) ?? { array: [], length: 0 };
  for (const [index, item] of node.items.entries()) {
    const inner = { faults: at.faults, path: `${at.path}[${index}]` };
    slice.array[index] = decodeInto(inner, of, item, slice.array[index]);
  }
  slice.length = node.items.length;
  return slice;
}

function decodeMap(at: Decoding, of: GoType, node: Node, into: unknown): Map<string, unknown> {
  if (node.kind !== 'map') throw wrongType(at, 'a map');
  const target = (into as Map<string, unknown> | undefined) ?? new Map<string, unknown>();
  const seen = new Set<string>();
  for (const [key, value] of node.entries) {
    const inner = { faults: at.faults, path: at.path === '' ? key : `${at.path}.${key}` };
    if (seen.has(key)) addFault(at, 'duplicate', inner.path);
    seen.add(key);
    target.set(key, decodeInto(inner, of, value, undefined));
  }
  return target;
}

function decodeScalar(at: Decoding, kind: 'string' | 'bool' | 'int64' | 'time', node: Node): unknown {
  if (kind === 'bool') {
    if (node.kind === 'bool') return node.value;
    throw wrongType(at, 'true or false');
  }
  if (kind === 'int64') {
    if (node.kind === 'number' && isInt64(node.text)) return BigInt(node.text);
    throw wrongType(at, 'a whole number');
  }
  if (node.kind !== 'string') throw wrongType(at, 'a text');
  if (kind === 'time' && !isRfc3339(node.value)) throw wrongType(at, 'an RFC 3339 time');
  return node.value;
}

function isInt64(text: string): boolean {
  return /^-?[0-9]+$/u.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

const RFC3339 =
  /^(\d{4})-(\d\d)-(\d\d)T\d\d:[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))$/u;

function isRfc3339(text: string): boolean {
  const [, year, month, day] = RFC3339.exec(text) ?? [];
  if (year === undefined || Number(text.slice(11, 13)) > 23) return false;
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= days;
}

function wrongType(at: Decoding, wanted: string): Error {
  return policyError(`must be ${wanted}`, at.path === '' ? 'the policy' : at.path);
}

function addFault(at: Decoding, what: 'unknown' | 'duplicate', path: string): void {
  if (at.faults.size < MAX_FAULTS) at.faults.add(`${what} field ${quote(path)}`);
}

/** Slices as ordinary lists. */
function plain(value: unknown): unknown {
  if (value instanceof Map || typeof value !== 'object' || value === null) return value;
  if (!('array' in value && Array.isArray(value.array))) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
  }
  const { array, length } = value as Slice;
  return array.slice(0, length).map(plain);
}
