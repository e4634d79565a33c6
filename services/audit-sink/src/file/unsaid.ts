import type { FileNames } from '@colonnade/audit-log';
import type { Gap } from '../gap.ts';
import { type JournalEnd, readJournalEnd } from './journal.ts';
import { type Place, placeOf } from './recover.ts';

/**
 * What the first record of a file has to say and no record says yet: that the stream or its numbers are other ones than before, or
 * that there was something before the first file of all. So it is found again whenever a writer was killed between beginning
 * such a file and its first record.
 * @param place where the log stands now
 */
export async function findUnsaid(names: FileNames, place: Place): Promise<Omit<Gap, 'backend'> | undefined> {
  const older = (await names.list()).flatMap(({ journal }) => journal ?? []);
  let oldest: JournalEnd | undefined;
  for (const file of [names.journal, ...older.reverse()]) {
    const end = await readJournalEnd(file);
    if (end === undefined) continue;
    if (end.last !== undefined) return changeOf(placeOf(end), place);
    oldest = end;
  }
  // Rotation may have removed what was before: then nothing is known of it.
  if (oldest?.header.previous !== '' || place.seq === 0) return undefined;
  return { reason: 'before_this_file', from: 1, to: place.seq, count: place.seq };
}

function changeOf(before: Place, now: Place): Omit<Gap, 'backend'> | undefined {
  if (before.stream !== now.stream) {
    return { reason: 'stream_recreated', from: before.seq, to: now.seq, count: 0 };
  }
  if (before.seq === now.seq) return undefined;
  return { reason: 'stream_went_back', from: now.seq + 1, to: before.seq, count: 0 };
}
