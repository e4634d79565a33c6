import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { namesOf } from '@colonnade/audit-log';
import type { Bus } from '@colonnade/bus';
import { auditFileConsumer, ColonnadeError } from '@colonnade/contracts';
import { acquireFileLock, type FileLock, type Hold, watchHold } from '@colonnade/service-kit';
import { createBury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import { createHousekeeping } from '../file/housekeeping.ts';
import { openLog } from '../file/open-log.ts';
import { createPersister } from '../file/persister.ts';
import type { KeepOptions } from '../file/prune.ts';
import { type BatchTakerOptions, createBatchTaker } from '../file/take-batch.ts';
import type { Writer } from '../file/writer.ts';
import type { Backend } from './backend.ts';

export type FileBackendOptions = BatchTakerOptions & {
  path: string;
  /** A log is rotated before it would grow beyond this, bytes. */
  maxBytes: number;
  keep: KeepOptions;
  fsync: 'always' | 'batch' | 'never';
  anchorMs: number;
};

const NAME = 'file';
/** Two syncs and an acknowledgement a batch: so long one is filled while the one before it is written, milliseconds. */
const FILL_MS = 50;

/** The lock, and the signal that it is no longer ours: its file was removed, and another may have locked a new one. */
function openLead(lock: FileLock): Hold {
  const hold = watchHold(lock.isHeld);
  return {
    ...hold,
    [Symbol.dispose]() {
      hold[Symbol.dispose]();
      lock[Symbol.dispose]();
    },
  };
}

/** The log file: every record once, in the order of the stream, written by one replica at a time. */
export function createFileBackend(
  options: FileBackendOptions,
  deps: { bus: Bus; events: Events },
): Backend & { reopen(): Promise<void> } {
  const { bus, events } = deps;
  const names = namesOf(options.path);
  const bury = createBury(bus, NAME, events);
  let lead: Hold | undefined;
  const persister = createPersister(events, () => {
    if (lead?.isHeld() !== true) throw new ColonnadeError('unavailable', `${names.lock} was removed`);
  });
  const housekeeping = createHousekeeping({
    ...options,
    bus,
    names,
    events,
    logName: path.basename(options.path),
    inTurn: persister.inTurn,
  });
  const takeBatch = createBatchTaker(options, { bus, names, bury, persister, events });
  let writer: Writer | undefined;
  const stepDown = async () => {
    await persister.idle();
    await writer?.close();
    writer = undefined;
    lead?.[Symbol.dispose]();
    lead = undefined;
  };
  return {
    name: NAME,
    consumer: auditFileConsumer,
    batch: () => ({
      maxMessages: options.fsync === 'always' ? 1 : 1024,
      maxBytes: 8 * 1024 * 1024,
      waitMs: 2000,
      fillMs: FILL_MS,
    }),
    async run(signal) {
      await mkdir(names.dir, { recursive: true, mode: 0o700 });
      if (lead?.lost.aborted === true) {
        events.lockLost(names.lock);
        await stepDown();
      }
      if (lead === undefined) {
        const waiting = () => events.waitingForLock(options.path);
        const lock = await acquireFileLock(names.lock, signal, waiting);
        if (lock === undefined) return;
        lead = openLead(lock);
      }
      const state = await bus.consumerState(auditFileConsumer);
      const sync = options.fsync !== 'never';
      writer = await openLog({ ...options, names, sync, onRotated: housekeeping.rotated }, state, events);
      housekeeping.start(writer);
    },
    turn: () => lead?.lost ?? AbortSignal.abort(),
    process(batch, signal) {
      if (writer === undefined) throw new ColonnadeError('unavailable', 'the log is not open');
      return takeBatch(writer, batch, signal);
    },
    async shutdown() {
      await persister.idle();
      await housekeeping[Symbol.asyncDispose]();
      await stepDown();
    },
    check: persister.check,
    async reopen() {
      const open = writer;
      if (open !== undefined) await persister.inTurn(open.reopen).catch(() => {});
    },
  };
}
