import type { Collection, Document } from 'mongodb';
import { Long } from 'mongodb';
import { type KeyWrites, type RewrapProgress, SEALED_BYTES, type SealedRow } from '../port-keys.ts';
import { packText } from '../rules/batch.ts';
import { stillUsed } from '../rules/key-use.ts';
import { openSealedCursor, writeSealedCursor } from '../rules/sealed-cursor.ts';
import type { ClockDocument, RewrapDocument, Tables } from './connection.ts';
import { toPillar } from './documents.ts';
import { fillInKids, INDEX, NO_KID } from './schema.ts';
import { packStoredValue } from './stored-value.ts';
import { flush, type Group } from './transaction.ts';

type Within = object;

/** Writes down the key of what another program has stored without it. */
export async function fillIn(tables: Tables, within: Within): Promise<void> {
  for (const table of [tables.pillars, tables.versions])
    await fillInKids(table as unknown as Collection<Document>, within);
}

export async function countKeyUse(tables: Tables, within: Within): Promise<ReadonlyMap<string, number>> {
  await fillIn(tables, within);
  const counts = new Map<string, number>();
  const add = async (table: Collection<Document>, which: object, hint: object) => {
    const groups = [{ $match: which }, { $group: { _id: '$kid', n: { $sum: 1 } } }];
    for (const { _id, n } of await table.aggregate(groups, { ...within, hint }).toArray())
      counts.set(String(_id), (counts.get(String(_id)) ?? 0) + Number(n));
  };
  const sealed = { is_secret: true, kid: { $gt: NO_KID } };
  await add(tables.pillars as never, sealed, INDEX.sealed);
  await add(tables.versions as never, sealed, INDEX.sealed);
  await add(tables.imports as never, { kid: { $gt: NO_KID } }, INDEX.importKid);
  return counts;
}

export async function listSealed(
  tables: Tables,
  within: Within,
  kid: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<{ rows: SealedRow[]; next: string | undefined }> {
  const { table, pid, tick } = openSealedCursor(after);
  const collection = tables[table] as unknown as Collection<Document>;
  // By the range the index finds the place, by the rest it is exact.
  const which = {
    ...{ is_secret: true, kid, pid: { $gte: pid } },
    $or: [{ pid: { $gt: pid } }, { pid, tick: { $gt: Long.fromNumber(tick) } }],
  };
  const sort = { pid: 1, tick: 1 } as const;
  const cursor = collection.find(which, { ...within, hint: INDEX.sealed, sort, limit, batchSize: 50 });
  const rows: SealedRow[] = [];
  let last: { pid: string; tick: number } | undefined;
  let bytes = 0;
  for await (const document of cursor) {
    const { pid: at, tgtType, tgtId, pillarenv, name, value, tick: now } = toPillar(document);
    bytes += packText(value).length;
    if (rows.length > 0 && bytes > SEALED_BYTES) return { rows, next: writeSealedCursor(table, last) };
    rows.push({ pid: at, tgtType, tgtId, pillarenv, name, value });
    last = { pid: at, tick: now };
  }
  return { rows, next: writeSealedCursor(table, rows.length < limit ? undefined : last) };
}

/** Document by document, each by what it was: a transaction beside it that writes the same one is tried again by its owner. */
export async function swapSealed(
  tables: Tables,
  within: Within,
  swaps: Parameters<KeyWrites['swapSealed']>[0],
): Promise<number> {
  let swapped = 0;
  for (const { pid, from, to } of swaps) {
    const { value, kid } = packStoredValue(from) as { value: unknown; kid?: string };
    const which = { pid, is_secret: true, kid: kid ?? NO_KID, value: { $eq: value } } as object;
    const change = { $set: packStoredValue(to) } as object;
    const pillar = await tables.pillars.updateOne(which, change, { ...within, hint: INDEX.pillarPid });
    const versions = await tables.versions.updateMany(which, change, { ...within, hint: INDEX.version });
    if (Number(pillar.matchedCount) + Number(versions.matchedCount) > 0) swapped += 1;
  }
  return swapped;
}

/** In a transaction that writes the clock, as every other that writes: of two at once one sees what the other did. */
export async function closeKids(group: Group, kids: readonly string[]): Promise<void> {
  await flush(group);
  const { tables, within, clock } = group;
  for (const kid of kids.filter((one) => !clock.closedKids.includes(one))) {
    const sealed = { is_secret: true, kid };
    const found =
      (await tables.pillars.findOne(sealed, { ...within, hint: INDEX.sealed })) ??
      (await tables.versions.findOne(sealed, { ...within, hint: INDEX.sealed })) ??
      (await tables.imports.findOne({ kid }, { ...within, hint: INDEX.importKid }));
    if (found !== null) throw stillUsed(kid);
  }
  await tables.meta.updateOne({ _id: 'clock' }, { $set: { closed_kids: [...kids] } }, within);
  group.clock = { ...clock, closedKids: kids };
}

export async function readClosedKids(tables: Tables, within: Within): Promise<readonly string[]> {
  const found = (await tables.meta.findOne({ _id: 'clock' }, within)) as ClockDocument | null;
  return found?.closed_kids ?? [];
}

export async function readRewrap(tables: Tables, within: Within): Promise<RewrapProgress | undefined> {
  const found = (await tables.meta.findOne({ _id: 'rewrap' }, within)) as RewrapDocument | null;
  return found === null ? undefined : { finishedAtMs: undefined, ...JSON.parse(found.progress) };
}

export async function writeRewrap(tables: Tables, within: Within, progress: RewrapProgress): Promise<void> {
  const change = { $set: { progress: JSON.stringify(progress) } };
  await tables.meta.updateOne({ _id: 'rewrap' }, change, { ...within, upsert: true, hint: INDEX.id });
}
