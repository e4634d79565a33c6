import type { PillarRecord } from '@colonnade/estate-store';
import { canonicalText } from '@colonnade/value';

/** Stored records do not change, so that each value is measured once. */
const measured = new WeakMap<PillarRecord, number>();

/** UTF-8 bytes of a pillar's value as it is stored. */
export function valueBytes(record: PillarRecord): number {
  const known = measured.get(record);
  if (known !== undefined) return known;
  const bytes = Buffer.byteLength(canonicalText(record.value));
  measured.set(record, bytes);
  return bytes;
}

/** Of a pillar in a compiled one: its name, its value, and what stands between. A secret's name is also in a list. */
export function recordBytes(record: PillarRecord): number {
  const name = Buffer.byteLength(canonicalText(record.name)) + 2;
  return (record.isSecret ? 2 : 1) * name + valueBytes(record);
}
