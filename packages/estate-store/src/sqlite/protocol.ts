import type { Clock, Lease } from '../port.ts';
import type { Retention } from '../port-history.ts';
import type { RewrapProgress } from '../port-keys.ts';
import type { PackedBatch } from '../rules/batch.ts';
import type { PackedChange } from '../rules/import.ts';
import type { ErrorMessage } from './errors.ts';

/**
 * What crosses between the caller's thread and the writer's. Values travel as canonical text: structured clone
 * would give their objects a prototype, and the text is what the tables hold anyway.
 */

export type PackedResult =
  | { replayed: false; clock: Clock }
  | { replayed: true; clock: Clock; response: string; tick: number };

/** What the writer's thread can be asked, with what it answers. */
export type Jobs = {
  write: { ask: PackedBatch<string>; answer: PackedResult };
  dropOutbox: { ask: { tick: number; index: number; lease: string; fence: number }; answer: undefined };
  acquireLease: { ask: { name: string; holder: string; ttlMs: number }; answer: Lease | undefined };
  trimHistory: {
    ask: { retention: Retention; after: string | undefined };
    answer: { removed: number; next: string | undefined };
  };
  releaseLease: { ask: { name: string; holder: string }; answer: undefined };
  noteTokenUse: { ask: { id: string; atMs: number }; answer: undefined };
  stageImport: { ask: { id: string; changes: readonly PackedChange<string>[] }; answer: undefined };
  applyImport: {
    ask: { id: string; changes: number } & Pick<PackedBatch<string>, 'by' | 'atMs' | 'events'>;
    answer: Clock;
  };
  dropImports: { ask: { id: string } | { idleSinceMs: number }; answer: { imports: number; more: boolean } };
  swapSealed: { ask: readonly { pid: string; from: string; to: string }[]; answer: number };
  closeKids: { ask: readonly string[]; answer: undefined };
  writeRewrap: { ask: RewrapProgress; answer: undefined };
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
