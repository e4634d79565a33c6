import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { ImportChange } from '../port-bulk.ts';
import {
  type PackedInventoryPut,
  type PackedServicePut,
  type PackedTemplatePut,
  type PillarCreate,
  type PillarUpdate,
  packText,
} from './batch.ts';

/** A change of an import with its values as an adapter stores them. */
export type PackedChange<V> =
  | PillarCreate<V>
  | PillarUpdate<V>
  | PackedTemplatePut
  | PackedInventoryPut
  | PackedServicePut
  | Exclude<
      ImportChange,
      { kind: 'pillar.create' | 'pillar.update' | 'template.put' | 'inventory.put' | 'service.put' }
    >;

/** @throws ColonnadeError bad_request (too many at once) | value_invalid */
export function packChanges<V>(
  changes: readonly ImportChange[],
  pack: (value: Value) => V,
): PackedChange<V>[] {
  if (changes.length > LIMITS.importStageRows) {
    throw new ColonnadeError('bad_request', `at most ${LIMITS.importStageRows} changes are staged at a time`);
  }
  return changes.map((change) => packChange(change, pack));
}

function packChange<V>(change: ImportChange, pack: (value: Value) => V): PackedChange<V> {
  switch (change.kind) {
    case 'pillar.update':
      return { ...change, value: pack(change.value) };
    case 'pillar.create':
      return { kind: change.kind, record: { ...change.record, value: pack(change.record.value) } };
    case 'template.put':
      return { ...change, record: { ...change.record, schema: packText(change.record.schema) } };
    case 'inventory.put':
      return { ...change, record: { ...change.record, facts: packText(change.record.facts) } };
    case 'service.put':
      return { ...change, record: { ...change.record, types: packText(change.record.types) } };
    default:
      return change;
  }
}

/** Somebody wrote between the comparison and the switch. */
export function estateChanged(): ColonnadeError {
  return new ColonnadeError(
    'precondition_failed',
    'the estate has changed since the import was compared with it; nothing was imported',
  );
}

/** @throws ColonnadeError conflict */
export function checkAllStaged(found: number, expected: number): void {
  if (found === expected) return;
  throw new ColonnadeError('conflict', 'the import is not staged whole; nothing was imported');
}

/** Expectations that are broken at the switch are about the estate, not about one record of the request. */
export function asImportError(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  return thrown.code === 'already_exists' || thrown.code === 'precondition_failed' ? estateChanged() : thrown;
}
