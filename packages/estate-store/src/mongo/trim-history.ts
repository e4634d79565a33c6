import { type Document, Long } from 'mongodb';
import type { Retention } from '../port-history.ts';
import { checkRetention, cutOf, TRIM_PILLARS, TRIM_VERSIONS } from '../rules/retention.ts';
import type { Tables } from './connection.ts';
import { toNumber, type VersionDocument } from './documents.ts';
import { INDEX } from './schema.ts';

type Within = object;
type Mark = Pick<VersionDocument, 'pid' | 'tick' | 'op' | 'updated_at'>;

/**
 * One batch of a trimming, without a transaction: what is removed is older than what decides, and is never written to
 * again but by a purge. That a pillar is forgotten is written down before it is.
 */
export async function trimHistory(
  tables: Tables,
  within: Within,
  { retention, after }: { retention: Retention; after: string | undefined },
): Promise<{ removed: number; next: string | undefined }> {
  checkRetention(retention);
  let removed = 0;
  let done = after;
  for (let looked = 0; looked < TRIM_PILLARS; looked++) {
    const next = await findMark(tables, within, { pid: { $gt: done ?? '' } }, 1);
    if (next === undefined) return { removed, next: undefined };
    removed += await trimOne(tables, within, next.pid, retention, TRIM_VERSIONS - removed);
    // The pillar may have more to remove: the next batch begins with it.
    if (removed === TRIM_VERSIONS) return { removed, next: done ?? '' };
    done = next.pid;
  }
  return { removed, next: done };
}

async function trimOne(
  tables: Tables,
  within: Within,
  pid: string,
  { keep, beforeMs }: Retention,
  room: number,
): Promise<number> {
  const newest = await findMark(tables, within, { pid }, -1);
  if (newest === undefined) return 0;
  const beyond = keep === undefined ? undefined : await findMark(tables, within, { pid }, -1, keep);
  const before =
    beforeMs === undefined
      ? undefined
      : await findMark(tables, within, { pid, updated_at: { $lt: new Date(beforeMs) } }, -1);
  const { upTo, whole } = cutOf({
    newest: { tick: toNumber(newest.tick), op: newest.op },
    beyondKeep: beyond && toNumber(beyond.tick),
    beforeTime: before && toNumber(before.tick),
  });
  if (upTo === 0) return 0;
  if (whole) {
    const floor = { $max: { floor: newest.tick, floor_at: newest.updated_at } };
    await tables.meta.updateOne({ _id: 'history' }, floor, { ...within, upsert: true, hint: INDEX.id });
  }
  const old = { pid, tick: { $lte: Long.fromNumber(upTo) } };
  const options = {
    ...within,
    hint: INDEX.version,
    projection: MARK,
    sort: { tick: 1 },
    limit: room,
  } as const;
  const last = (await tables.versions.find(old, options).toArray()).at(-1);
  if (last === undefined) return 0;
  const gone = { pid, tick: { $lte: last.tick } };
  return Number((await tables.versions.deleteMany(gone, { ...within, hint: INDEX.version })).deletedCount);
}

const MARK = { _id: 0, pid: 1, tick: 1, op: 1, updated_at: 1 } as const;

async function findMark(
  tables: Tables,
  within: Within,
  wanted: Document,
  order: 1 | -1,
  skip = 0,
): Promise<Mark | undefined> {
  const sort = { pid: order, tick: order };
  const options = { ...within, hint: INDEX.version, projection: MARK, sort, skip };
  return (await tables.versions.findOne(wanted, options)) ?? undefined;
}
