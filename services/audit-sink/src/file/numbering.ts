import { type FileNames, parseRecord, readRawLines } from '@colonnade/audit-log';
import type { Delivery } from '@colonnade/bus';
import { ColonnadeError } from '@colonnade/contracts';
import { findNewNumbering } from './plan.ts';
import type { Place } from './recover.ts';

/** When the stream stored what a log has under these sequences; those that no journal here knows are not in it. */
export type ReadTimes = (seqs: ReadonlySet<number>) => Promise<ReadonlyMap<number, bigint>>;

/**
 * An old number that is another record than the log has under it: the stream has lost its end, or was made anew, and numbers anew. The
 * journal knows when each was stored, so no clock has to run forwards for it; where it does not, a newer time tells.
 */
export async function findOtherNumbering(
  batch: readonly Delivery[],
  place: Place,
  readTimes: ReadTimes,
): Promise<Delivery | undefined> {
  const old = batch.filter(({ seq }) => seq <= place.seq);
  if (old.length === 0) return undefined;
  const times = await readTimes(new Set(old.map(({ seq }) => seq)));
  const strangers = old.filter(({ seq }) => !times.has(seq));
  const newer = findNewNumbering(strangers, place);
  return old.find((one) => one === newer || (times.get(one.seq) ?? one.storedAtNs) !== one.storedAtNs);
}

/** Looks through the journals, the newest first: of a number that was given twice, the second time counts. */
export function timesIn(names: FileNames): ReadTimes {
  return async (seqs) => {
    const times = new Map<number, bigint>();
    const rotated = (await names.list()).flatMap(({ journal }) => journal ?? []);
    for (const journal of [names.journal, ...rotated.reverse()]) {
      if (times.size === seqs.size) break;
      for (const [seq, time] of await timesOf(journal, seqs)) if (!times.has(seq)) times.set(seq, time);
    }
    return times;
  };
}

async function timesOf(journal: string, seqs: ReadonlySet<number>): Promise<ReadonlyMap<number, bigint>> {
  const times = new Map<number, bigint>();
  try {
    for await (const { bytes, ended } of readRawLines(journal)) {
      const record = ended ? parseRecord(bytes.toString('latin1')) : undefined;
      // A gap record stands at the place of what it tells of.
      if (record !== undefined && record.kind !== 'g' && seqs.has(record.seq)) {
        times.set(record.seq, record.storedAtNs);
      }
    }
  } catch (thrown) {
    // Removed meanwhile, by whomever.
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'not_found') throw thrown;
  }
  return times;
}
