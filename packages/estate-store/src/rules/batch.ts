import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, type Value, ValueError } from '@colonnade/value';
import type { IdempotencyDraft, Mutation, PillarDraft, WriteBatch } from '../port.ts';
import { kidsOf } from './key-use.ts';

/** Mutations and batches with their values as an adapter stores them: `V` for pillars, canonical text for the rest. */

type With<V, T> = Omit<T, 'value'> & { value: V };
type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;
type TemplatePut = Of<'template.put'>;
type InventoryPut = Of<'inventory.put'>;
type ServicePut = Of<'service.put'>;

export type PillarCreate<V> = { kind: 'pillar.create'; record: With<V, PillarDraft> };
export type PillarUpdate<V> = With<V, Of<'pillar.update'>>;
export type PillarMove<V> = With<V, Of<'pillar.move'>>;
export type PillarRestore<V> = Omit<Of<'pillar.restore'>, 'record'> & { record: With<V, PillarDraft> };

/** The schema as canonical text: nobody searches in it. */
export type PackedTemplatePut = Omit<TemplatePut, 'record'> & {
  record: Omit<TemplatePut['record'], 'schema'> & { schema: string };
};

/** So are the facts. */
export type PackedInventoryPut = Omit<InventoryPut, 'record'> & {
  record: Omit<InventoryPut['record'], 'facts'> & { facts: string };
};

/** And the types. */
export type PackedServicePut = Omit<ServicePut, 'record'> & {
  record: Omit<ServicePut['record'], 'types'> & { types: string };
};

export type PackedMutation<V> =
  | PillarCreate<V>
  | PillarUpdate<V>
  | PillarMove<V>
  | PillarRestore<V>
  | PackedTemplatePut
  | PackedInventoryPut
  | PackedServicePut
  | Exclude<
      Mutation,
      {
        kind:
          | 'pillar.create'
          | 'pillar.update'
          | 'pillar.move'
          | 'pillar.restore'
          | 'template.put'
          | 'inventory.put'
          | 'service.put';
      }
    >;

export type PackedBatch<V> = {
  mutations: readonly PackedMutation<V>[];
  /** Under which keys it brings values in. */
  kids: readonly string[];
  events: readonly { type: string; subject: string; data: string }[];
  by: string;
  atMs: number;
  idempotency: (Omit<IdempotencyDraft, 'response'> & { response: string }) | undefined;
};

/**
 * Takes the batch as it is now, so that the caller may go on with its objects.
 * @throws ColonnadeError `value_invalid` for a value that has no canonical text.
 */
export function packBatch<V>(batch: WriteBatch, packPillarValue: (value: Value) => V): PackedBatch<V> {
  const { idempotency } = batch;
  return {
    mutations: batch.mutations.map((mutation) => packMutation(mutation, packPillarValue)),
    kids: kidsOf(batch.mutations),
    events: batch.events.map(({ type, subject, data }) => ({ type, subject, data: packText(data) })),
    by: batch.by,
    atMs: batch.atMs,
    idempotency: idempotency && { ...idempotency, response: packText(idempotency.response) },
  };
}

function packMutation<V>(mutation: Mutation, pack: (value: Value) => V): PackedMutation<V> {
  switch (mutation.kind) {
    case 'pillar.update':
    case 'pillar.move':
      return { ...mutation, value: pack(mutation.value) };
    case 'pillar.create':
    case 'pillar.restore':
      return { ...mutation, record: { ...mutation.record, value: pack(mutation.record.value) } };
    case 'template.put':
      return { ...mutation, record: { ...mutation.record, schema: packText(mutation.record.schema) } };
    case 'inventory.put':
      return { ...mutation, record: { ...mutation.record, facts: packText(mutation.record.facts) } };
    case 'service.put':
      return { ...mutation, record: { ...mutation.record, types: packText(mutation.record.types) } };
    default:
      return mutation;
  }
}

/** The canonical text. @throws ColonnadeError `value_invalid` for a value that has none */
export function packText(value: Value): string {
  try {
    return canonicalText(value);
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    throw new ColonnadeError('value_invalid', `not a value that can be kept: ${thrown.message}`, {
      cause: thrown,
    });
  }
}

/**
 * One record is changed at most once in a batch, so that (record, tick) names one state of it.
 * @throws ColonnadeError bad_request
 */
export function checkShape({ mutations, events }: PackedBatch<unknown>): void {
  if (mutations.length === 0 && events.length === 0)
    throw new ColonnadeError('bad_request', 'the batch is empty');
  const seen = new Set<string>();
  for (const [index, mutation] of mutations.entries()) {
    const record = recordKey(mutation);
    if (seen.has(record)) {
      throw new ColonnadeError('bad_request', 'a record is changed twice in one batch', {
        field: `mutations.${index}`,
      });
    }
    seen.add(record);
  }
}

function recordKey(mutation: PackedMutation<unknown>): string {
  const type = mutation.kind.slice(0, mutation.kind.indexOf('.'));
  if ('pid' in mutation) return `${type}:${mutation.pid}`;
  if (mutation.kind === 'pillar.create' || mutation.kind === 'pillar.restore')
    return `${type}:${mutation.record.pid}`;
  if (mutation.kind === 'scope.requireUnchanged') return `${type}:${mutation.pillarenv}`;
  const record = 'record' in mutation ? mutation.record : mutation;
  return 'master' in record ? `${type}:${record.master}/${record.id}` : `${type}:${record.id}`;
}

/** An answer is given again only to the same request. @throws ColonnadeError idempotency_mismatch */
export function checkFingerprint(kept: { fingerprint: string }, asked: { fingerprint: string }): void {
  if (kept.fingerprint === asked.fingerprint) return;
  throw new ColonnadeError('idempotency_mismatch', 'the idempotency key was used for another request');
}
