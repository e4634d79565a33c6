import { ColonnadeError } from '@colonnade/contracts';
import { applyBatch } from './apply-batch.ts';
import { createEstateFile, type Db, openConnection } from './connection.ts';
import { packError, toStoreError } from './errors.ts';
import { applyImport, dropImports, stageImport } from './imports.ts';
import { closeKids, swapSealed, writeRewrap } from './key-use.ts';
import { acquireLease, dropOutbox, releaseLease } from './leases.ts';
import { migrate } from './migrate.ts';
import type { Job, Reply, Request, WriterOptions } from './protocol.ts';
import { createScrubber } from './scrub.ts';
import { noteTokenUse } from './token-use.ts';
import { trimHistory } from './trim-history.ts';

export type QueuedJob = Exclude<Request, 'close'>;

export type Writer = {
  /** Runs as many of the jobs as fit one short transaction; the replies hold only after the commit they report. */
  commitGroup(jobs: readonly QueuedJob[]): { replies: Reply[]; rest: QueuedJob[] };
  /** Removes the remains of purged values. @returns false when it must be tried again */
  scrub(again: boolean): boolean;
  close(): void;
};

/** A group takes no further job after this long: transactions stay short for other writers and for the WAL. */
const GROUP_MS = 10;
const JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024;

/** Opens the one connection that writes, and migrates. Blocking: belongs off the event loop. */
export function openWriter(options: WriterOptions): Writer {
  const db = openForWriting(options);
  const scrubber = createScrubber(db, options.busyTimeoutMs);
  return {
    commitGroup: (jobs) => commitGroup(db, jobs, options.changeTicksKept),
    scrub: scrubber.run,
    close: () => db.close(),
  };
}

/** Makes the file when it is missing, and brings it to this program's schema. */
export function openForWriting(options: Omit<WriterOptions, 'changeTicksKept'>): Db {
  createEstateFile(options.path);
  const db = openConnection(options.path, { readOnly: false, busyTimeoutMs: options.busyTimeoutMs });
  try {
    setUp(db, options);
    migrate(db, { newIncarnation: options.newIncarnation });
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function setUp(db: Db, { busyTimeoutMs, maxBytes }: Pick<WriterOptions, 'busyTimeoutMs' | 'maxBytes'>): void {
  enableWal(db, Date.now() + busyTimeoutMs);
  db.exec('PRAGMA synchronous = FULL');
  db.exec('PRAGMA secure_delete = ON');
  db.exec(`PRAGMA journal_size_limit = ${JOURNAL_LIMIT_BYTES}`);
  if (maxBytes === undefined) return;
  const pageBytes = db.get<{ page_size: number }>('PRAGMA page_size')?.page_size ?? 4096;
  db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageBytes))}`);
}

/** The switch to WAL needs the file alone, and SQLite does not wait for that by itself. */
function enableWal(db: Db, deadlineMs: number): void {
  for (;;) {
    try {
      const mode = db.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL')?.journal_mode;
      if (mode === 'wal') return;
      throw new ColonnadeError('misconfigured', 'the file system of the estate file cannot hold a WAL');
    } catch (thrown) {
      const isBusy = ((thrown as { errcode?: number }).errcode ?? 0) % 256 === 5;
      if (!isBusy || Date.now() > deadlineMs) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

type Outcome = { replies: Reply[]; rest: QueuedJob[] };

/**
 * One SQLite transaction for several jobs: with synchronous=FULL a commit waits for the disk, and that wait is
 * shared. Each job has its savepoint, so a refusal undoes that job alone. A fault of the store undoes the group,
 * and its jobs are tried once more, one by one, so that only those that cannot be written fail. When the file is
 * locked, all of them fail at once: each would wait as long for the same lock, one after the other.
 */
function commitGroup(db: Db, jobs: readonly QueuedJob[], changeTicksKept: number): Outcome {
  let replies: Reply[] = [];
  try {
    db.checkFile();
    db.exec('BEGIN IMMEDIATE');
    const deadline = performance.now() + GROUP_MS;
    for (const queued of jobs) {
      replies.push(runInSavepoint(db, queued, changeTicksKept));
      if (performance.now() > deadline) break;
    }
  } catch (thrown) {
    rollBack(db);
    if (jobs.length > 1 && !isLocked(thrown)) return commitSingly(db, jobs, changeTicksKept);
    replies = failAll(jobs, thrown);
    return { replies, rest: [] };
  }
  const taken = jobs.slice(0, replies.length);
  try {
    db.exec('COMMIT');
  } catch (thrown) {
    rollBack(db);
    replies = failAll(taken, thrown);
  }
  return { replies, rest: jobs.slice(taken.length) };
}

function isLocked(thrown: unknown): boolean {
  const code = ((thrown as { errcode?: number }).errcode ?? 0) % 256;
  return code === 5 || code === 6;
}

function commitSingly(db: Db, jobs: readonly QueuedJob[], changeTicksKept: number): Outcome {
  const replies = jobs.flatMap((queued) => commitGroup(db, [queued], changeTicksKept).replies);
  return { replies, rest: [] };
}

/** @throws what is no refusal of ours: then the state of the whole transaction is in doubt. */
function runInSavepoint(db: Db, { id, job }: QueuedJob, changeTicksKept: number): Reply {
  db.exec('SAVEPOINT job');
  try {
    const answer = runJob(db, job, changeTicksKept);
    db.exec('RELEASE job');
    return { type: 'answer', id, answer };
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) && toStoreError(thrown).code === 'unavailable') throw thrown;
    db.exec('ROLLBACK TO job');
    db.exec('RELEASE job');
    return { type: 'error', id, error: packError(thrown) };
  }
}

function runJob(db: Db, job: Job, changeTicksKept: number): unknown {
  switch (job.kind) {
    case 'write':
      return applyBatch(db, job.ask, Date.now(), changeTicksKept);
    case 'dropOutbox':
      return dropOutbox(db, job.ask);
    case 'acquireLease':
      return acquireLease(db, job.ask, Date.now());
    case 'releaseLease':
      return releaseLease(db, job.ask);
    case 'trimHistory':
      return trimHistory(db, job.ask);
    case 'noteTokenUse':
      return noteTokenUse(db, job.ask);
    case 'stageImport':
      return stageImport(db, job.ask, Date.now());
    case 'applyImport':
      return applyImport(db, job.ask, changeTicksKept);
    case 'dropImports':
      return dropImports(db, job.ask);
    case 'swapSealed':
      return swapSealed(db, job.ask);
    case 'closeKids':
      return closeKids(db, job.ask);
    case 'writeRewrap':
      return writeRewrap(db, job.ask);
    case 'ping':
      return undefined;
  }
}

function failAll(jobs: readonly QueuedJob[], thrown: unknown): Reply[] {
  const error = packError(thrown);
  return jobs.map(({ id }) => ({ type: 'error', id, error }));
}

function rollBack(db: Db): void {
  if (db.inTransaction) db.exec('ROLLBACK');
}
