import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { namesOf } from '@colonnade/audit-log';
import type { Bus } from '@colonnade/bus';
import { auditFileConsumer, ColonnadeError } from '@colonnade/contracts';
import { acquireFileLock, type FileLock } from '@colonnade/service-kit';
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

/** The log file: every record once, in the order of the stream, written by one replica at a time. */
export function createFileBackend(
  options: FileBackendOptions,
  deps: { bus: Bus; events: Events },
): Backend & { reopen(): Promise<void> } {
  const { bus, events } = deps;
  const names = namesOf(options.path);
  const bury = createBury(bus, NAME, events);
  const persister = createPersister(events);
  const housekeeping = createHousekeeping({
    ...options,
    bus,
    names,
    events,
    logName: path.basename(options.path),
    inTurn: persister.inTurn,
  });
  const takeBatch = createBatchTaker(options, { bus, names, bury, persister, events });
  let lock: FileLock | undefined;
  let writer: Writer | undefined;
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
      lock ??= await acquireFileLock(names.lock, signal, () => events.waitingForLock(options.path));
      if (lock === undefined) return;
      const state = await bus.consumerState(auditFileConsumer);
      const sync = options.fsync !== 'never';
      writer = await openLog({ ...options, names, sync, onRotated: housekeeping.rotated }, state, events);
      housekeeping.start(writer);
    },
    process(batch, signal) {
      if (writer === undefined) throw new ColonnadeError('unavailable', 'the log is not open');
      return takeBatch(writer, batch, signal);
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
