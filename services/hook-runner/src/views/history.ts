import {
  ColonnadeError,
  clipText,
  type hooksGeneration,
  type hooksGenerations,
  type hooksHistory,
  LIMITS,
} from '@colonnade/contracts';
import type { z } from 'zod';
import type { GenerationStore, GenerationSummary } from '../store/generation-store.ts';
import type { RunRecord, RunStore } from '../store/run-store.ts';
import { eventNamed } from './list-folders.ts';

const REASON_CHARACTERS = 300;

/** @throws ColonnadeError `bad_request`, `unavailable` */
export function viewRuns(
  { event, limit, after }: z.output<typeof hooksHistory.request>,
  store: Pick<RunStore, 'history'>,
): z.output<typeof hooksHistory.response> {
  const known = event === undefined ? undefined : eventNamed(event);
  const rows = store.history(limit + 1, known, placeOf(after));
  // One run is shown in any case, or whoever reads on would never come past it.
  const runs = fitting(rows.slice(0, limit).map(viewRun), 1);
  const last = rows[runs.length - 1];
  const next = rows.length > runs.length && last !== undefined ? { next: String(last.place) } : {};
  return { runs, ...next };
}

function placeOf(after: string | undefined): number | undefined {
  if (after === undefined) return undefined;
  if (/^[0-9]{1,15}$/u.test(after)) return Number(after);
  throw new ColonnadeError('bad_request', 'no place in the history', { field: 'cursor' });
}

function viewRun({ id, event, subject, begunMs, endedMs, status, fault, results }: RunRecord) {
  return {
    ...{ run: id, event, subject, begun_at: new Date(begunMs).toISOString() },
    ended_at: endedMs === undefined ? null : new Date(endedMs).toISOString(),
    status: status ?? null,
    ...(fault === undefined ? {} : { fault }),
    results: results.map(({ hook, status: one, reason, durationMs }) => {
      return { hook, status: one, reason, duration_ms: Math.round(durationMs) };
    }),
  };
}

/** @throws ColonnadeError `unavailable` */
export function viewGenerations(
  { limit, after }: z.output<typeof hooksGenerations.request>,
  store: Pick<GenerationStore, 'history'>,
): z.output<typeof hooksGenerations.response> {
  const rows = store.history(limit + 1, after);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? { next: last.id } : {};
  return { generations: shown.map(viewGeneration), ...next };
}

/** @throws ColonnadeError `not_found`, `unavailable` */
export function viewGenerationDetail(
  { id }: z.output<typeof hooksGeneration.request>,
  store: Pick<GenerationStore, 'find'>,
): z.output<typeof hooksGeneration.response> {
  const record = store.find(id);
  if (record === undefined) throw new ColonnadeError('not_found', 'there was no generation of this name');
  const updated = fitting(record.updated.map(refOf));
  const failed = fitting(
    record.failed.map(({ minion, reason }) => {
      return { ...refOf(minion), reason: clipText(reason, REASON_CHARACTERS), refresh: 'withheld' as const };
    }),
  );
  const all = record.updated.length + record.failed.length;
  return {
    ...viewGeneration({
      ...record,
      ...{ updatedCount: record.updated.length, failedCount: record.failed.length },
    }),
    ...{ updated, failed, names_left_out: all - updated.length - failed.length },
  };
}

/** The first ones, as many as are shown and as fit half of an answer. @param least so many do, whatever they take */
function fitting<T>(items: readonly T[], least = 0): T[] {
  let left = LIMITS.generationListBytes;
  return items.slice(0, LIMITS.generationMinions).filter((item, i) => {
    left -= Buffer.byteLength(JSON.stringify(item)) + 1;
    return i < least || left >= 0;
  });
}

function viewGeneration({ id, endedAt, status, reason, updatedCount, failedCount }: GenerationSummary) {
  return {
    ...{ id, ended_at: endedAt, status },
    ...(reason === undefined ? {} : { reason: clipText(reason, REASON_CHARACTERS) }),
    updated_count: updatedCount,
    failed_count: failedCount,
  };
}

/** From `master/minion`; neither has a slash. */
function refOf(name: string): { master: string; minion_id: string } {
  const [master = '', minion_id = ''] = name.split('/');
  return { master, minion_id };
}
