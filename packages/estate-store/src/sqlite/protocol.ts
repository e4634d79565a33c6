import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, type Value, ValueError } from '@colonnade/value';
import type { Clock, Lease, Mutation, WriteBatch } from '../port.ts';
import type { ErrorMessage } from './errors.ts';

/**
 * What crosses between the caller's thread and the writer's. Values travel as canonical text: structured clone
 * would give their objects a prototype, and the text is what the tables hold anyway.
 */

type WithText<T> = Omit<T, 'value'> & { value: string };

export type PillarCreate = { kind: 'pillar.create'; record: WithText<PillarDraft> };
export type PillarUpdate = WithText<Extract<Mutation, { kind: 'pillar.update' }>>;
type PillarDraft = Extract<Mutation, { kind: 'pillar.create' }>['record'];

export type PackedMutation =
  | PillarCreate
  | PillarUpdate
  | Exclude<Mutation, { kind: 'pillar.create' | 'pillar.update' }>;

export type PackedBatch = {
  mutations: readonly PackedMutation[];
  events: readonly { type: string; subject: string; data: string }[];
  by: string;
  atMs: number;
  idempotency: { scope: string; fingerprint: string; response: string; expiresAtMs: number } | undefined;
};

export type PackedResult =
  | { replayed: false; clock: Clock }
  | { replayed: true; clock: Clock; response: string; tick: number };

/** What the writer's thread can be asked, with what it answers. */
export type Jobs = {
  write: { ask: PackedBatch; answer: PackedResult };
  dropOutbox: { ask: { tick: number; index: number; lease: string; fence: number }; answer: undefined };
  acquireLease: { ask: { name: string; holder: string; ttlMs: number }; answer: Lease | undefined };
  releaseLease: { ask: { name: string; holder: string }; answer: undefined };
  ping: { ask: undefined; answer: undefined };
};

export type JobKind = keyof Jobs;

export type Job = { [K in JobKind]: { kind: K; ask: Jobs[K]['ask'] } }[JobKind];

export type Request = { id: number; job: Job } | 'close';

export type Reply =
  | { type: 'ready' }
  | { type: 'failed'; error: ErrorMessage }
  | { type: 'answer'; id: number; answer: unknown }
  | { type: 'error'; id: number; error: ErrorMessage };

export type WriterOptions = {
  path: string;
  busyTimeoutMs: number;
  newIncarnation: boolean;
  maxBytes: number | undefined;
  changeTicksKept: number;
};

/** @throws ColonnadeError `value_invalid` for a value that has no canonical text. */
export function packBatch(batch: WriteBatch): PackedBatch {
  const { idempotency } = batch;
  return {
    mutations: batch.mutations.map(packMutation),
    events: batch.events.map(({ type, subject, data }) => ({ type, subject, data: packValue(data) })),
    by: batch.by,
    atMs: batch.atMs,
    idempotency: idempotency && { ...idempotency, response: packValue(idempotency.response) },
  };
}

function packMutation(mutation: Mutation): PackedMutation {
  if (mutation.kind === 'pillar.update') return { ...mutation, value: packValue(mutation.value) };
  if (mutation.kind !== 'pillar.create') return mutation;
  return { kind: mutation.kind, record: { ...mutation.record, value: packValue(mutation.record.value) } };
}

function packValue(value: Value): string {
  try {
    return canonicalText(value);
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    throw new ColonnadeError('value_invalid', `not a value that can be kept: ${thrown.message}`, {
      cause: thrown,
    });
  }
}
