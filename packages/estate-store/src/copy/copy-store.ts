import { createHash } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, fromPlain, type Value } from '@colonnade/value';
import { openMongoSource, openMongoTarget } from '../mongo/archive.ts';
import type { EstatePlace } from '../place.ts';
import type { Clock } from '../port.ts';
import { INCARNATION_JUMP } from '../rules/clock.ts';
import { openSqliteSource, openSqliteTarget } from '../sqlite/archive.ts';
import {
  ARCHIVE_TABLES,
  type ArchiveRows,
  type ArchiveSource,
  type ArchiveTable,
  type ArchiveTarget,
  type KeptAnswer,
  type ReadRows,
} from './archive.ts';

export type CopyReport = {
  /** Of the estate that was read, and of the new one. */
  from: Clock;
  to: Clock;
  /** Rows of each table, and the SHA-256 of them, the same on both sides. */
  tables: Readonly<Record<ArchiveTable, { rows: number; sha256: string }>>;
};

export type CopyOptions = { onProgress?: (table: ArchiveTable, rows: number) => void | Promise<void> };

/** Answers that are about to expire may go on one side while they are compared. */
const EXPIRES_SOON_MS = 60_000;

/**
 * Copies an estate whole into an empty place, of the same kind or another, and compares both before the copy becomes
 * an estate: with the same pids, ticks and history, and a clock of its own, far ahead, since the old one may go on.
 * Nothing may write to the estate meanwhile. A copy that is cut short leaves an empty file, or a database that is no estate.
 * @throws ColonnadeError `conflict` (written to meanwhile, place not empty, rows that differ) | `unavailable` | `misconfigured`
 */
export async function copyStore(
  from: EstatePlace,
  to: EstatePlace,
  { onProgress }: CopyOptions = {},
): Promise<CopyReport> {
  await using source = await openSource(from);
  const clock = await source.readClock();
  const before = await source.readMarks();
  await using target = await openTarget(to);
  for (const table of ARCHIVE_TABLES) await copyTable(source, target, table, onProgress);
  const tables = await compare(source.readRows, target.readRows);
  const now = await source.readClock();
  const marks = await source.readMarks();
  if (JSON.stringify([now, marks]) !== JSON.stringify([clock, before])) throw changedMeanwhile();
  const made = await target.finish(clock.tick + INCARNATION_JUMP, marks);
  return { from: clock, to: made, tables };
}

function openSource(place: EstatePlace): Promise<ArchiveSource> {
  return place.kind === 'sqlite' ? openSqliteSource(place.path) : openMongoSource(place);
}

function openTarget(place: EstatePlace): Promise<ArchiveTarget> {
  return place.kind === 'sqlite' ? openSqliteTarget(place.path) : openMongoTarget(place);
}

async function copyTable<T extends ArchiveTable>(
  source: ArchiveSource,
  target: ArchiveTarget,
  table: T,
  onProgress: CopyOptions['onProgress'],
): Promise<void> {
  let count = 0;
  for await (const rows of source.readRows(table)) {
    await target.append(table, rows);
    count += rows.length;
    await onProgress?.(table, count);
  }
}

async function compare(left: ReadRows, right: ReadRows): Promise<CopyReport['tables']> {
  const soonMs = Date.now() + EXPIRES_SOON_MS;
  const tables: Partial<Record<ArchiveTable, { rows: number; sha256: string }>> = {};
  for (const table of ARCHIVE_TABLES) {
    const [a, b] = [await digest(left, table, soonMs), await digest(right, table, soonMs)];
    if (a.rows !== b.rows || a.sha256 !== b.sha256) {
      throw new ColonnadeError('conflict', `the ${table} of the copy are not those of the estate`);
    }
    tables[table] = a;
  }
  return tables as CopyReport['tables'];
}

async function digest(readRows: ReadRows, table: ArchiveTable, soonMs: number) {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const chunk of readRows(table)) {
    for (const row of chunk) {
      if (table === 'answers' && (row as KeptAnswer).expiresAtMs <= soonMs) continue;
      hash.update(rowText(row)).update('\n');
      rows += 1;
    }
  }
  return { rows, sha256: hash.digest('hex') };
}

/** Equal for equal rows, whatever the order of their fields. */
function rowText(row: ArchiveRows[ArchiveTable]): string {
  const fields = Object.entries(row).map(([name, field]): [string, unknown] =>
    ['value', 'data', 'response', 'schema', 'facts', 'types', 'scopedRoles'].includes(name)
      ? [name, canonicalText(name === 'scopedRoles' ? fromPlain(field) : (field as Value))]
      : [name, field],
  );
  return JSON.stringify(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function changedMeanwhile(): ColonnadeError {
  return new ColonnadeError(
    'conflict',
    'the estate was written to while it was copied: stop what writes to it',
  );
}
