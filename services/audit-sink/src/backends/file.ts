import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bus, type Delivery, DONE, type Verdict } from '@colonnade/bus';
import { auditFileConsumer, ColonnadeError } from '@colonnade/contracts';
import { type Bury, createBury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import { namesOf } from '../file/files.ts';
import type { LogFormat } from '../file/format.ts';
import { createHousekeeping } from '../file/housekeeping.ts';
import { acquireFileLock, type FileLock } from '../file/lock.ts';
import { gapEntry, openLog } from '../file/open-log.ts';
import { findNewNumbering, isLost, type Plan, planBatch } from '../file/plan.ts';
import type { KeepOptions } from '../file/prune.ts';
import type { Writer } from '../file/writer.ts';
import type { Backend, EventFilter } from './backend.ts';

export type FileBackendOptions = {
  path: string;
  format: LogFormat;
  /** A log is rotated before it would grow beyond this, bytes. */
  maxBytes: number;
  keep: KeepOptions;
  fsync: 'always' | 'batch' | 'never';
  /** Records up to this sequence may be missing: an operator has looked at it. */
  acceptGapTo: number;
  anchorMs: number;
  filter?: EventFilter | undefined;
};

const NAME = 'file';
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2000;
const HOLE_RETRY_MS = 250;
/** What a dead writer had taken comes again after the consumer's wait; a hole that stays longer is a loss. */
const HOLE_PATIENCE_MS = 4 * auditFileConsumer.ackWaitMs;

/** The log file: every record once, in the order of the stream, written by one replica at a time. */
export function createFileBackend(
  options: FileBackendOptions,
  deps: { bus: Bus; events: Events },
): Backend & { reopen(): Promise<void> } {
  const { bus, events } = deps;
  const names = namesOf(options.path);
  const bury = createBury(bus, NAME, events);
  const housekeeping = createHousekeeping({
    ...options,
    bus,
    names,
    events,
    logName: path.basename(options.path),
  });
  const persister = createPersister(events);
  let lock: FileLock | undefined;
  let writer: Writer | undefined;
  let holeSinceMs: number | undefined;

  return {
    name: NAME,
    consumer: auditFileConsumer,
    batch: () => ({
      maxMessages: options.fsync === 'always' ? 1 : 1024,
      maxBytes: 8 * 1024 * 1024,
      waitMs: 2000,
      fillMs: 0,
    }),
    async run(signal) {
      await mkdir(names.dir, { recursive: true, mode: 0o700 });
      events.waitingForLock(options.path);
      lock ??= await acquireFileLock(names.lock, signal);
      if (lock === undefined) return;
      const state = await bus.consumerState(auditFileConsumer);
      const sync = options.fsync !== 'never';
      writer = await openLog({ ...options, names, sync, onRotated: housekeeping.rotated }, state, events);
      housekeeping.start(writer);
    },
    async process(batch, signal) {
      const open = writer;
      if (open === undefined) throw new ColonnadeError('unavailable', 'the log is not open');
      await startOverIfNumberedAnew(open, batch, options.format, persister, signal, events);
      const plan = planBatch(batch, open.place(), options);
      await buryPoison(plan, bury, open.place().stream);
      if (plan.entries.length > 0) await persister.persist(() => open.append(plan.entries), signal);
      report(events, batch, plan);
      if (plan.hole === undefined) {
        holeSinceMs = undefined;
        persister.refuse(undefined);
        return batch.map(() => DONE);
      }
      holeSinceMs ??= performance.now();
      const { from, to } = plan.hole;
      const late = performance.now() - holeSinceMs > HOLE_PATIENCE_MS;
      if (late || isLost(from - 1, await bus.consumerState(auditFileConsumer))) {
        if (to > options.acceptGapTo) persister.refuse(plan.hole);
        else await acceptGap(open, plan.hole, options.format, persister, signal, events);
      }
      const later: Verdict = { kind: 'later', delayMs: HOLE_RETRY_MS };
      return batch.map(({ seq }) => (seq >= from ? later : DONE));
    },
    async shutdown() {
      await persister.idle();
      await housekeeping[Symbol.asyncDispose]();
      await writer?.close();
      writer = undefined;
      lock?.[Symbol.dispose]();
      lock = undefined;
    },
    check: persister.check,
    async reopen() {
      const open = writer;
      if (open !== undefined) await persister.inTurn(open.reopen).catch(() => {});
    },
  };
}

type Persister = ReturnType<typeof createPersister>;

/** Lets one thing at a time happen to the files, and waits for a full disk instead of giving the batch back. */
function createPersister(events: Events) {
  let turn: Promise<unknown> = Promise.resolve();
  let fault: string | undefined;
  let refused: string | undefined;
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  };
  return {
    inTurn,
    idle: () => turn,
    /** Tries until it is done: the messages stay held meanwhile, so their order is kept. @throws at the signal */
    async persist(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
      for (let delay = RETRY_MIN_MS; ; delay = Math.min(2 * delay, RETRY_MAX_MS)) {
        try {
          await inTurn(work);
          if (fault !== undefined) events.backendWorks(NAME);
          fault = undefined;
          return;
        } catch (thrown) {
          if (fault === undefined) events.backendFailing(NAME, thrown);
          fault = `the log cannot be written: ${(thrown as NodeJS.ErrnoException).code ?? 'unknown'}`;
          await sleep(delay, undefined, { signal }).catch(() => {});
          if (signal.aborted) throw thrown;
        }
      }
    },
    /** Nothing more is written until the hole is accepted; undefined: there is none. */
    refuse(hole: { from: number; to: number } | undefined) {
      if (hole !== undefined && refused === undefined) events.gapRefused({ backend: NAME, ...hole });
      if (hole === undefined && refused !== undefined) events.backendWorks(NAME);
      refused = hole && `records ${hole.from} to ${hole.to} are gone from the stream`;
    },
    check() {
      const why = fault ?? refused;
      if (why !== undefined) throw new Error(why);
    },
  };
}

async function buryPoison(plan: Plan, bury: Bury, stream: string): Promise<void> {
  // Before the journal says that they are dealt with: afterwards nobody would look at them again.
  for (const { delivery, reason, detail } of plan.poison) await bury(delivery, reason, detail, stream);
}

async function startOverIfNumberedAnew(
  writer: Writer,
  batch: readonly Delivery[],
  format: LogFormat,
  persister: Persister,
  signal: AbortSignal,
  events: Events,
): Promise<void> {
  const place = writer.place();
  const first = findNewNumbering(batch, place);
  if (first === undefined) return;
  const at = { stream: place.stream, seq: first.seq - 1, storedAtNs: first.storedAtNs - 1n };
  const gap = { reason: 'stream_went_back', from: first.seq, to: place.seq, count: 0 } as const;
  await persister.persist(async () => {
    if (writer.place().seq !== at.seq) await writer.startOver(at);
    await writer.append([gapEntry(gap, at, format)]);
  }, signal);
  events.gapWritten({ backend: NAME, ...gap });
}

async function acceptGap(
  writer: Writer,
  hole: { from: number; to: number },
  format: LogFormat,
  persister: Persister,
  signal: AbortSignal,
  events: Events,
): Promise<void> {
  const gap = { reason: 'lost_from_stream', ...hole, count: hole.to - hole.from + 1 } as const;
  const entry = gapEntry(gap, { ...writer.place(), seq: hole.to }, format);
  await persister.persist(() => writer.append([entry]), signal);
  events.gapWritten({ backend: NAME, ...gap });
}

function report(events: Events, batch: readonly Delivery[], { counts, poison }: Plan): void {
  events.counted(NAME, 'taken', counts.taken);
  events.counted(NAME, 'again', counts.again);
  events.counted(NAME, 'filtered', counts.filtered);
  const [oldest] = batch;
  if (oldest === undefined || counts.taken + poison.length === 0) return;
  events.batchTaken(NAME, batch.length, Date.now() - Number(oldest.storedAtNs / 1_000_000n));
}
