import { type Change, LIMITS } from '@colonnade/contracts';
import { canonicalBytes, type Value, valuesEqual } from '@colonnade/value';

export type Diff = { changes: Change[]; more: boolean };

/**
 * Where two values differ: objects key by key, lists place by place, so that something put in at the front of a list
 * changes all places behind it. `1` and `1.0` differ.
 * @returns at most LIMITS.diffChanges of them, and LIMITS.diffBytes
 */
export function diffValues(before: Value, after: Value): Diff {
  const changes: Change[] = [];
  let bytes = 0;
  for (const change of walk('', before, after)) {
    bytes += sizeOf(change);
    if (changes.length === LIMITS.diffChanges || bytes > LIMITS.diffBytes) return { changes, more: true };
    changes.push(change);
  }
  return { changes, more: false };
}

function* walk(path: string, before: Value, after: Value): Generator<Change> {
  if (valuesEqual(before, after)) return;
  const [left, right] = [childrenOf(before), childrenOf(after)];
  if (left === undefined || right === undefined || Array.isArray(before) !== Array.isArray(after)) {
    yield { path, before, after };
    return;
  }
  for (const [key, value] of left) {
    const at = `${path}/${escapeKey(key)}`;
    const other = right.get(key);
    if (other === undefined) yield { path: at, before: value };
    else yield* walk(at, value, other);
  }
  for (const [key, value] of right) {
    if (!left.has(key)) yield { path: `${path}/${escapeKey(key)}`, after: value };
  }
}

function childrenOf(value: Value): Map<string, Value> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return new Map(Object.entries(value));
}

/** RFC 6901 */
function escapeKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function sizeOf({ path, before, after }: Change): number {
  const values = [before, after].filter((value) => value !== undefined);
  return path.length + values.reduce<number>((sum, value) => sum + canonicalBytes(value).length, 0);
}
