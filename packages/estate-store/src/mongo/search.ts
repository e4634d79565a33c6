import { canonicalText } from '@colonnade/value';
import type { Document } from 'mongodb';
import type { PillarRecord } from '../port.ts';
import { type BulkReads, SEARCH_SLICE } from '../port-bulk.ts';
import { checkLimit } from '../rules/page.ts';
import type { Tables } from './connection.ts';
import { toPillar } from './documents.ts';
import { INDEX } from './schema.ts';

type Ask = Parameters<BulkReads['searchPillars']>;

/**
 * One slice: its last pid from the index, then what fits within it. The server compares all but the values, whose
 * canonical text it does not have.
 */
export async function searchPillars(tables: Tables, within: object, search: Ask[0], page: Ask[1]) {
  const { after = '', limit } = page;
  checkLimit(limit);
  const inOrder = { ...within, hint: INDEX.pillarPid, sort: INDEX.pillarPid } as const;
  const ends = { ...inOrder, skip: SEARCH_SLICE - 1, limit: 1, projection: { pid: 1 } };
  const [end] = await tables.pillars.find({ pid: { $gt: after } }, ends).toArray();
  const last = end?.pid;
  const range = last === undefined ? { $gt: after } : { $gt: after, $lte: last };
  const found = await tables.pillars.find({ ...filterOf(search), pid: range }, inOrder).toArray();
  const rows = found
    .map(toPillar)
    .filter((pillar) => hasValue(pillar, search.value))
    .slice(0, limit);
  return { rows, next: rows.length === limit ? rows.at(-1)?.pid : last };
}

function filterOf(search: Ask[0]): Document {
  const { pillarenvs, name, namePrefix, createdBy, updatedBy, sinceMs, untilMs } = search;
  const time = {
    ...(sinceMs === undefined ? {} : { $gte: new Date(sinceMs) }),
    ...(untilMs === undefined ? {} : { $lt: new Date(untilMs) }),
  };
  const names = [
    ...(name === undefined ? [] : [{ name }]),
    ...(namePrefix === undefined ? [] : [{ name: { $regex: `^${escaped(namePrefix)}` } }]),
  ];
  return {
    tgt_type: { $in: [...search.tgtTypes] },
    ...(pillarenvs === undefined ? {} : { pillarenv: { $in: [...pillarenvs] } }),
    ...(names.length === 0 ? {} : { $and: names }),
    ...(search.value === undefined ? {} : { is_secret: false }),
    ...(createdBy === undefined ? {} : { created_by: createdBy }),
    ...(updatedBy === undefined ? {} : { updated_by: updatedBy }),
    ...(Object.keys(time).length === 0 ? {} : { updated_at: time }),
  };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/gu, '\\$&');
}

function hasValue(pillar: PillarRecord, part: string | undefined): boolean {
  return part === undefined || canonicalText(pillar.value).includes(part);
}
