import { ColonnadeError } from '@colonnade/contracts';
import { type RewrapProgress, SEALED_BYTES, type SealedRow } from '../port-keys.ts';
import { stillUsed } from '../rules/key-use.ts';
import { openSealedCursor, writeSealedCursor } from '../rules/sealed-cursor.ts';
import type { Db } from './connection.ts';
import type { Jobs } from './protocol.ts';
import { type PillarRow, readValue } from './rows.ts';

/** Wherever a sealed value may stand. */
const TABLES = ['pillars', 'pillar_versions', 'import_rows'] as const;

export function countKeyUse(db: Db): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const table of TABLES) {
    const sql = `SELECT kid, count(*) AS n FROM ${table} WHERE kid IS NOT NULL GROUP BY kid`;
    for (const { kid, n } of db.all<{ kid: string; n: number }>(sql))
      counts.set(kid, (counts.get(kid) ?? 0) + n);
  }
  return counts;
}

type Row = Pick<PillarRow, 'pid' | 'tgt_type' | 'tgt_id' | 'pillarenv' | 'name' | 'value'> & {
  tick: number;
  bytes: number;
};

export function listSealed(
  db: Db,
  kid: string,
  { after, limit }: { after: string | undefined; limit: number },
): { rows: SealedRow[]; next: string | undefined } {
  const { table, pid, tick } = openSealedCursor(after);
  const name = table === 'pillars' ? 'pillars' : 'pillar_versions';
  // The place alone first: a page of values is as large as it may be, and no larger.
  const places = db.all<Row>(
    `SELECT pid, tick, octet_length(value) AS bytes FROM ${name} WHERE kid = ? AND (pid, tick) > (?, ?)
     ORDER BY kid, pid, tick LIMIT ?`,
    ...[kid, pid, tick, limit],
  );
  const taken = fitting(places);
  const rows = taken.flatMap((place): SealedRow[] => {
    const sql = `SELECT pid, tgt_type, tgt_id, pillarenv, name, value FROM ${name} WHERE pid = ? AND tick = ?`;
    const row = db.get<Row>(sql, place.pid, place.tick);
    return row === undefined ? [] : [toSealed(row)];
  });
  const last = taken.at(-1);
  const isEnd = taken.length === places.length && places.length < limit;
  return { rows, next: writeSealedCursor(table, isEnd ? undefined : last) };
}

/** At least one. */
function fitting(places: readonly Row[]): readonly Row[] {
  let bytes = 0;
  const over = places.findIndex((place, i) => {
    bytes += place.bytes;
    return i > 0 && bytes > SEALED_BYTES;
  });
  return over === -1 ? places : places.slice(0, over);
}

function toSealed({ pid, tgt_type, tgt_id, pillarenv, name, value }: Row): SealedRow {
  return {
    pid,
    tgtType: tgt_type as SealedRow['tgtType'],
    tgtId: tgt_id,
    pillarenv,
    name,
    value: readValue(value),
  };
}

/** Inside the open transaction: texts are compared whole. */
export function swapSealed(db: Db, swaps: Jobs['swapSealed']['ask']): number {
  let swapped = 0;
  for (const { pid, from, to } of swaps) {
    const changed =
      db.run('UPDATE pillars SET value = ? WHERE pid = ? AND is_secret = 1 AND value = ?', to, pid, from) +
      db.run(
        'UPDATE pillar_versions SET value = ? WHERE pid = ? AND is_secret = 1 AND value = ?',
        to,
        pid,
        from,
      );
    if (changed > 0) swapped += 1;
  }
  return swapped;
}

export function readClosedKids(db: Db): readonly string[] {
  return JSON.parse(db.get<{ closed_kids: string }>('SELECT closed_kids FROM meta')?.closed_kids ?? '[]');
}

/** Inside the open transaction: no other write can come between the look and the closing. */
export function closeKids(db: Db, kids: Jobs['closeKids']['ask']): undefined {
  const before = readClosedKids(db);
  for (const kid of kids.filter((one) => !before.includes(one)))
    for (const table of TABLES)
      if (db.get(`SELECT 1 FROM ${table} WHERE kid = ? LIMIT 1`, kid) !== undefined) throw stillUsed(kid);
  if (db.run('UPDATE meta SET closed_kids = ?', JSON.stringify(kids)) === 1) return;
  throw new ColonnadeError('unavailable', 'the estate has no clock');
}

export function readRewrap(db: Db): RewrapProgress | undefined {
  const text = db.get<{ rewrap: string | null }>('SELECT rewrap FROM meta')?.rewrap;
  return text == null ? undefined : { finishedAtMs: undefined, ...JSON.parse(text) };
}

export function writeRewrap(db: Db, progress: RewrapProgress): undefined {
  db.run('UPDATE meta SET rewrap = ?', JSON.stringify(progress));
}
