import type { Clock } from '../port.ts';
import type { HistoryStore, ScopePage } from '../port-history.ts';
import type { Db } from './connection.ts';
import { readHistoryFloor } from './reads.ts';
import * as rows from './rows.ts';

type Only = { pids: readonly string[] | undefined };

const onlyOf = ({ pids }: Only) => (pids === undefined ? '' : 'AND pid IN (SELECT value FROM json_each(?))');
const valuesOf = ({ pids }: Only) => (pids === undefined ? [] : [JSON.stringify(pids)]);

/** Three versions of each pillar, found by the key: how many it has does not matter. */
export function readScopePage(
  db: Db,
  { incarnation, tick }: Clock,
  pillarenv: string,
  options: Parameters<HistoryStore['readScopePage']>[1],
): ScopePage {
  const { at, after, limit } = options;
  const pids = db
    .all<{ pid: string }>(
      `SELECT DISTINCT pid FROM pillar_versions WHERE pillarenv = ? AND pid > ? ${onlyOf(options)} ORDER BY pid LIMIT ?`,
      ...[pillarenv, after ?? '', ...valuesOf(options), limit],
    )
    .map(({ pid }) => pid);
  const found = db.all<rows.MarkRow>(
    `WITH stood AS (SELECT value AS pid FROM json_each(?)), wanted AS (
       SELECT pid, (SELECT MIN(tick) FROM pillar_versions v WHERE v.pid = stood.pid) AS tick FROM stood
       UNION SELECT pid, (SELECT MAX(tick) FROM pillar_versions v WHERE v.pid = stood.pid) FROM stood
       UNION SELECT pid, (SELECT MAX(tick) FROM pillar_versions v WHERE v.pid = stood.pid AND v.tick <= ?) FROM stood
     )
     SELECT pid, tick, op, purged, tgt_type, tgt_id, pillarenv, name, is_secret, updated_at_ms FROM wanted
     JOIN pillar_versions USING (pid, tick) ORDER BY pid, tick`,
    ...[JSON.stringify(pids), at],
  );
  const next = pids.length < limit ? undefined : pids.at(-1);
  const clock = { incarnation, tick };
  return { clock, historyFloor: readHistoryFloor(db), marks: found.map(rows.toMark), next };
}

export function findScopeChange(
  db: Db,
  { incarnation, tick }: Clock,
  pillarenv: string,
  options: Parameters<HistoryStore['findScopeChange']>[1],
): Awaited<ReturnType<HistoryStore['findScopeChange']>> {
  const found = db.get<{ tick: number | null }>(
    `SELECT MIN(tick) AS tick FROM pillar_versions WHERE updated_at_ms > ?
     AND pid IN (SELECT pid FROM pillar_versions WHERE pillarenv = ? ${onlyOf(options)})`,
    ...[options.afterMs, pillarenv, ...valuesOf(options)],
  );
  return { clock: { incarnation, tick }, tick: found?.tick ?? undefined };
}
