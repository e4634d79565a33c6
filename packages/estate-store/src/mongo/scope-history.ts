import { type Document, Long } from 'mongodb';
import type { HistoryStore, ScopePage } from '../port-history.ts';
import * as documents from './documents.ts';
import { readHistoryFloor } from './reads.ts';
import { INDEX } from './schema.ts';
import type { Group } from './transaction.ts';

type Reading = Pick<Group, 'tables' | 'within' | 'clock'>;
type Only = { pids: readonly string[] | undefined };

const MARK = Object.fromEntries(
  ['pid', 'tick', 'op', 'purged', 'tgt_type', 'tgt_id', 'pillarenv', 'name', 'is_secret', 'updated_at'].map(
    (field) => [field, 1],
  ),
);
/** Versions of one pillar, on the average, up to which all of them are read at once. */
const VERSIONS_EACH = 10;
/** Rows of the scope looked at for one page. */
const ROWS_AT_ONCE = 1000;

/** Belongs into a transaction, as what is below does: it reads several times. */
export async function readScopePage(
  reading: Reading,
  pillarenv: string,
  options: Parameters<HistoryStore['readScopePage']>[1],
): Promise<ScopePage> {
  const { tables, within, clock } = reading;
  const { at, after, limit } = options;
  const { pids, next } = await readPids(reading, pillarenv, { ...options, after, limit });
  const max = pids.length * VERSIONS_EACH;
  const read = (wanted: Document, order: 1 | -1, rows: number) =>
    tables.versions
      .find(wanted, {
        ...{ ...within, hint: INDEX.version, projection: { _id: 0, ...MARK } },
        ...{ sort: { pid: order, tick: order }, limit: rows },
      })
      .toArray();
  const all = pids.length === 0 ? [] : await read({ pid: { $in: [...pids] } }, 1, max + 1);
  const marks: documents.VersionDocument[] = [];
  if (all.length <= max) {
    marks.push(...[...Map.groupBy(all, ({ pid }) => pid).values()].flatMap((versions) => pick(versions, at)));
  } else {
    // Pillars with long histories: three of each are found by the key.
    for (const pid of pids) {
      const first = await read({ pid }, 1, 1);
      const then = await read({ pid, tick: { $lte: Long.fromNumber(at) } }, -1, 1);
      marks.push(...pick([...first, ...then, ...(await read({ pid }, -1, 1))], at));
    }
  }
  const { incarnation, tick } = clock;
  const historyFloor = await readHistoryFloor(tables, within);
  return { clock: { incarnation, tick }, historyFloor, marks: marks.map(documents.toMark), next };
}

/** Of versions in their order the first, the last up to a tick, and the last, each once. */
function pick(versions: readonly documents.VersionDocument[], at: number): documents.VersionDocument[] {
  const then = versions.findLast(({ tick }) => documents.toNumber(tick) <= at);
  const kept = [versions[0], then, versions.at(-1)].filter((one) => one !== undefined);
  return [...new Map(kept.map((one) => [documents.toNumber(one.tick), one])).values()];
}

/** At most `limit` pids of whatever stood in a scope; the rows are as many as each has versions there. */
async function readPids(
  { tables, within }: Reading,
  pillarenv: string,
  { pids: only, after, limit }: Only & { after: string | undefined; limit: number },
): Promise<{ pids: string[]; next: string | undefined }> {
  const named = [
    ...(after === undefined ? [] : [{ pid: { $gt: after } }]),
    ...(only === undefined ? [] : [{ pid: { $in: [...only] } }]),
  ];
  const wanted = { pillarenv, ...(named.length === 0 ? {} : { $and: named }) };
  const found = await tables.versions
    .find(wanted, {
      ...{ ...within, hint: INDEX.versionEnv, projection: { _id: 0, pid: 1 } },
      ...{ sort: INDEX.versionEnv, limit: ROWS_AT_ONCE },
    })
    .toArray();
  const all = [...new Set(found.map(({ pid }) => pid))];
  const pids = all.slice(0, limit);
  const isLast = found.length < ROWS_AT_ONCE && all.length <= limit;
  return { pids, next: isLast ? undefined : pids.at(-1) };
}

export async function findScopeChange(
  reading: Reading,
  pillarenv: string,
  { pids: only, afterMs }: Parameters<HistoryStore['findScopeChange']>[1],
): Promise<Awaited<ReturnType<HistoryStore['findScopeChange']>>> {
  const { tables, within, clock } = reading;
  const ticks: number[] = [];
  let after: string | undefined;
  do {
    const page = await readPids(reading, pillarenv, { pids: only, after, limit: ROWS_AT_ONCE });
    after = page.next;
    if (page.pids.length === 0) break;
    const later = { pid: { $in: page.pids }, updated_at: { $gt: new Date(afterMs) } };
    const options = {
      ...within,
      hint: INDEX.version,
      projection: { _id: 0, tick: 1 },
      sort: { tick: 1 as const },
    };
    const first = await tables.versions.findOne(later, options);
    if (first !== null) ticks.push(documents.toNumber(first.tick));
  } while (after !== undefined);
  const { incarnation, tick } = clock;
  return { clock: { incarnation, tick }, tick: ticks.length === 0 ? undefined : Math.min(...ticks) };
}
