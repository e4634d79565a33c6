import { ColonnadeError } from '@colonnade/contracts';
import type { HookResult, RunLedger, RunResult } from '../run/run-hooks.ts';
import { openDatabase } from './database.ts';
import { createGenerationStore, type GenerationStore } from './generation-store.ts';
import { type ProcessMark, processBirth } from './process-birth.ts';

export type RunId = { id: string; event: string; subject: string };

/** A run as the history shows it; without a status it is under way. */
export type RunRecord = RunId & {
  /** In the order of beginning. */
  place: number;
  begunMs: number;
  endedMs: number | undefined;
  status: RunResult['status'] | undefined;
  fault: string | undefined;
  /** Without what the hooks wrote, which may be much. */
  results: readonly HookOutcome[];
};
export type HookOutcome = Pick<HookResult, 'hook' | 'status' | 'reason' | 'durationMs'>;

/** What has run, and what runs. Only the leader writes: every write is refused once another has taken the lead. */
export type RunStore = Disposable & {
  generations: GenerationStore;
  /** Where the hooks of a run are written down; a run of which nothing ran leaves no trace. */
  ledger(run: RunId): RunLedger;
  /** @throws ColonnadeError `conflict`: another leads now */
  end(run: RunId, result: Pick<RunResult, 'status'> & { fault: string | undefined }): void;
  /** A run that has ended. */
  ended(id: string): RunRecord | undefined;
  /** Newest first; those that began before a place. */
  history(limit: number, event?: string, before?: number): readonly RunRecord[];
  /** Processes of hooks whose end was not written down. */
  underWay(): readonly ProcessMark[];
  forgetBefore(ms: number): void;
};

type RunRow = {
  place: number;
  id: string;
  event: string;
  subject: string;
  begun_ms: number;
  ended_ms: number | null;
  status: RunResult['status'] | null;
  fault: string | null;
};
type ResultRow = { hook: string; result: string | null };

export type RunStoreOptions = {
  nowMs?: () => number;
  /** Whether the lead is this process's still, as far as the file system says; asked before each write. */
  isHeld?: () => boolean;
  /** Told each time a write is refused, since another leads. */
  onLost?: () => void;
};

/**
 * Opens the file and takes the lead: whoever led before can write nothing any more.
 * @throws ColonnadeError `unavailable`, `misconfigured`
 */
export function openRunStore(file: string, options: RunStoreOptions = {}): RunStore {
  const { nowMs = Date.now, isHeld = () => true, onLost = () => {} } = options;
  const db = openDatabase(file);
  const fence = db.transaction(
    () => db.get<{ fence: number }>('UPDATE leader SET fence = fence + 1 RETURNING fence')?.fence,
  );
  const write = (work: () => void): void =>
    db.transaction(() => {
      const now = db.get<{ fence: number }>('SELECT fence FROM leader')?.fence;
      if (now !== fence || !isHeld()) {
        onLost();
        throw new ColonnadeError('conflict', 'another runner leads now');
      }
      work();
    });
  const begin = ({ id, event, subject }: RunId) =>
    db.run(
      'INSERT OR IGNORE INTO runs (id, event, subject, begun_ms) VALUES (?, ?, ?, ?)',
      id,
      event,
      subject,
      nowMs(),
    );
  const put = (run: RunId, hook: string, result: HookResult | undefined) => {
    begin(run);
    db.run(
      `INSERT INTO results (run, hook, position, result) VALUES (?1, ?2,
         (SELECT count(*) FROM results WHERE run = ?1), ?3)
       ON CONFLICT (run, hook) DO UPDATE SET result = excluded.result, pid = NULL, pid_birth = NULL`,
      ...[run.id, hook, result === undefined ? null : JSON.stringify(result)],
    );
  };
  const resultsOf = (id: string) =>
    db.all<ResultRow>('SELECT hook, result FROM results WHERE run = ? ORDER BY position', id);
  const outcomesOf = (id: string) =>
    db.all<HookOutcome>(
      `SELECT hook, result ->> '$.status' AS status, result ->> '$.reason' AS reason,
         result ->> '$.durationMs' AS durationMs
       FROM results WHERE run = ? AND result IS NOT NULL ORDER BY position`,
      id,
    );
  const read = (row: RunRow): RunRecord => ({
    place: row.place,
    id: row.id,
    event: row.event,
    subject: row.subject,
    begunMs: row.begun_ms,
    endedMs: row.ended_ms ?? undefined,
    status: row.status ?? undefined,
    fault: row.fault ?? undefined,
    results: outcomesOf(row.id),
  });
  return {
    generations: createGenerationStore(db, write, nowMs),
    ledger(run) {
      const before = new Map(resultsOf(run.id).map(({ hook, result }) => [hook, result]));
      return {
        known(hook) {
          const result = before.get(hook);
          if (result === undefined) return undefined;
          return result === null ? 'begun' : parseResult(result);
        },
        begun: (hook) => write(() => put(run, hook, undefined)),
        started: (hook, pid) =>
          write(() =>
            db.run(
              'UPDATE results SET pid = ?, pid_birth = ? WHERE run = ? AND hook = ?',
              ...[pid, processBirth(pid) ?? null, run.id, hook],
            ),
          ),
        ended: (result) => write(() => put(run, result.hook, result)),
      };
    },
    end: (run, { status, fault }) =>
      write(() => {
        begin(run);
        db.run(
          'UPDATE runs SET ended_ms = ?, status = ?, fault = ? WHERE id = ?',
          ...[nowMs(), status, fault ?? null, run.id],
        );
      }),
    ended(id) {
      const row = db.get<RunRow>(
        'SELECT rowid AS place, * FROM runs WHERE id = ? AND ended_ms IS NOT NULL',
        id,
      );
      return row === undefined ? undefined : read(row);
    },
    history: (limit, event, before = Number.MAX_SAFE_INTEGER) =>
      db
        .all<RunRow>(
          `SELECT rowid AS place, * FROM runs WHERE rowid < ?1 AND (?2 IS NULL OR event = ?2)
           ORDER BY rowid DESC LIMIT ?3`,
          ...[before, event ?? null, limit],
        )
        .map(read),
    underWay: () =>
      db.all<ProcessMark>(
        `SELECT pid, pid_birth AS birth FROM results
         WHERE result IS NULL AND pid IS NOT NULL AND pid_birth IS NOT NULL`,
      ),
    forgetBefore: (ms) => write(() => db.run('DELETE FROM runs WHERE begun_ms < ?', ms)),
    [Symbol.dispose]: () => db[Symbol.dispose](),
  };
}

/** Written by this program only, and nothing in it is a value of the estate. */
function parseResult(text: string): HookResult {
  return JSON.parse(text) as HookResult;
}
