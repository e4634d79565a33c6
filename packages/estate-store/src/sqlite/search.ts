import { type BulkReads, SEARCH_SLICE } from '../port-bulk.ts';
import { checkLimit } from '../rules/page.ts';
import type { Db } from './connection.ts';
import { type PillarRow, toPillar } from './rows.ts';

type Ask = Parameters<BulkReads['searchPillars']>;

/** The slice is cut out by its pids before anything is compared, so the time it takes has a bound. */
export function searchPillars(db: Db, search: Ask[0], { after = '', limit }: Ask[1]) {
  checkLimit(limit);
  const slice = 'SELECT * FROM pillars WHERE pid > ? ORDER BY pid LIMIT ?';
  const { sql, params } = conditionsOf(search);
  const found = db.all<PillarRow>(
    `SELECT * FROM (${slice}) WHERE ${sql} ORDER BY pid LIMIT ?`,
    ...[after, SEARCH_SLICE, ...params, limit],
  );
  const end = 'SELECT pid FROM pillars WHERE pid > ? ORDER BY pid LIMIT 1 OFFSET ?';
  const last = db.get<{ pid: string }>(end, after, SEARCH_SLICE - 1)?.pid;
  return { rows: found.map(toPillar), next: found.length === limit ? found.at(-1)?.pid : last };
}

function conditionsOf(search: Ask[0]): { sql: string; params: (string | number)[] } {
  const all: [sql: string, param: string | number | undefined][] = [
    ['tgt_type IN (SELECT value FROM json_each(?))', JSON.stringify(search.tgtTypes)],
    ['pillarenv IN (SELECT value FROM json_each(?))', search.pillarenvs && JSON.stringify(search.pillarenvs)],
    ['name = ?', search.name],
    ['instr(name, ?) = 1', search.namePrefix],
    ['is_secret = 0 AND instr(value, ?) > 0', search.value],
    ['created_by = ?', search.createdBy],
    ['updated_by = ?', search.updatedBy],
    ['updated_at_ms >= ?', search.sinceMs],
    ['updated_at_ms < ?', search.untilMs],
  ];
  const asked = all.filter((one): one is [string, string | number] => one[1] !== undefined);
  return { sql: asked.map(([sql]) => sql).join(' AND '), params: asked.map(([, param]) => param) };
}
