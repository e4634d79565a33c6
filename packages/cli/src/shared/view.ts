import { canonicalText, type Value, type ValueObject } from '@colonnade/value';
import type { Session } from '../session.ts';
import type { Column } from '../terminal/table.ts';

/** An object of the API's answer. */
export function asObject(value: Value | undefined): ValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

export function asList(value: Value | undefined): readonly Value[] {
  return Array.isArray(value) ? value : [];
}

/** A field for a person: text as it is, lists of texts with commas, everything else as JSON; `-` for nothing. */
export function textOf(value: Value | undefined): string {
  if (value === undefined || value === null || value === '') return '-';
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return canonicalText(value);
  if (value.length === 0) return '-';
  return value.every((one) => typeof one === 'string') ? value.join(', ') : canonicalText(value);
}

/** A column that shows a field of the API as textOf does. */
export function column(title: string, field: string, align?: 'right'): Column<Value> {
  const of = (row: Value) => textOf(asObject(row)[field]);
  return align === undefined ? { title, of } : { title, of, align };
}

/** A column with the value of a pillar: JSON, so that `"1"` is not `1`. */
export const VALUE_COLUMN: Column<Value> = {
  title: 'VALUE',
  of: (row) => {
    const { value, is_secret } = asObject(row);
    return is_secret === true ? textOf(value) : canonicalText(value ?? null);
  },
};

export const PILLAR_COLUMNS: readonly Column<Value>[] = [
  column('PID', 'pid'),
  { title: 'TARGET', of: (row) => targetText(asObject(row)) },
  column('NAME', 'name'),
  { title: 'SECRET', of: (row) => (asObject(row).is_secret === true ? 'yes' : 'no') },
  VALUE_COLUMN,
  column('BY', 'updated_by'),
  column('CHANGED', 'updated_at'),
];

export function targetText({ tgt_type, tgt_id, pillarenv }: ValueObject): string {
  if (tgt_type === 'root') return 'root';
  // A minion's environment names its master, which its id alone does not.
  return tgt_type === 'minion' ? textOf(pillarenv) : `${textOf(tgt_type)}:${textOf(tgt_id)}`;
}

/** The result of a command: the API's JSON, or names and values in the order given. */
export async function show(
  { out, json }: Session,
  value: Value | undefined,
  fields: (found: ValueObject) => readonly (readonly [string, string])[],
): Promise<void> {
  if (json) return await out.json(value ?? null);
  await out.fields(fields(asObject(value)));
}

/** Every field of an answer, as it is called there. */
export function allFields(found: ValueObject): (readonly [string, string])[] {
  return Object.entries(found).map(([name, value]) => [name, textOf(value)] as const);
}

export function pillarFields(found: ValueObject): (readonly [string, string])[] {
  const { value, is_secret, ...rest } = found;
  const shown = is_secret === true ? textOf(value) : canonicalText(value ?? null);
  const names = ['pid', 'name', 'tgt_type', 'tgt_id', 'pillarenv'];
  const later = ['created_by', 'created_at', 'updated_by', 'updated_at', 'clock', 'etag'];
  const row = (name: string) => [name, textOf(rest[name])] as const;
  return [...names.map(row), ['is_secret', textOf(is_secret)], ['value', shown], ...later.map(row)];
}
