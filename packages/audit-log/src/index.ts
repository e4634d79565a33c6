export { CHAIN_START, type Chained, nextHead } from './chain.ts';
export { applyFilter, type EventFilter, filterBy } from './filter.ts';
export { createMatcher, type FindOptions, findEvents, type Query, type SequenceRange } from './find.ts';
export { fitsJournal } from './fits.ts';
export { type FollowOptions, followLog } from './follow.ts';
export {
  formatHeader,
  formatRecord,
  JOURNAL_FORMAT,
  type JournalHeader,
  type JournalRecord,
  parseHeader,
  parseRecord,
} from './journal-format.ts';
export { listReadable, readRawLines } from './log-files.ts';
export { missingSequences } from './missing.ts';
export { type FileNames, namesOf, nextStamp, type Rotated } from './names.ts';
export { type ParsedEvent, type ReadEvent, readEvent, readMessage } from './read-message.ts';
export type { Skipped } from './read-vouched.ts';
export { readRemoval, removalUri } from './removal.ts';
export { sliceItems } from './slice-items.ts';
export { type Fault, type LogPoint, type Verification, verifyLog } from './verify.ts';
