import type { Delivery, PullOptions, Verdict } from '@colonnade/bus';
import type { ConsumerDefinition } from '@colonnade/contracts';

/**
 * One place audit events go to (seed 001: ProcessEvents, Run, Shutdown, String). Each has its own durable consumer, so that
 * none waits for another. A third backend is one more file that makes one of these.
 */
export type Backend = {
  readonly name: string;
  readonly consumer: ConsumerDefinition;
  /** How much it takes at once; asked before each batch. */
  batch(): PullOptions;
  /** Becomes ready: takes locks, opens files. Resolves when events may come, or at the signal. */
  run(signal: AbortSignal): Promise<void>;
  /** After `run`: aborted when it has lost what it needs to take events; then `run` is called again. */
  turn?(): AbortSignal;
  /** Takes a batch in the order of the stream: one verdict for each message. A throw means that all come again. */
  process(batch: readonly Delivery[], signal: AbortSignal): Promise<readonly Verdict[]>;
  /** Flushes what is under way and lets go of everything. */
  shutdown(): Promise<void>;
  /** @throws Error with what keeps it from taking events */
  check(): void;
};
