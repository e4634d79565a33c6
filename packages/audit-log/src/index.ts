export { CHAIN_START, nextHead } from './chain.ts';
export { applyFilter, type EventFilter, filterBy } from './filter.ts';
export { createMatcher, findEvents, type Query, type SequenceRange } from './find.ts';
export { type FollowOptions, followLog } from './follow.ts';
export {
  formatHeader,
  formatRecord,
  type JournalHeader,
  type JournalRecord,
  parseHeader,
  parseRecord,
} from './journal-format.ts';
export { listReadable } from './log-files.ts';
export { type FileNames, namesOf, nextStamp, type Rotated } from './names.ts';
export { type ParsedEvent, type ReadEvent, readEvent, readMessage } from './read-message.ts';
export { sliceItems } from './slice-items.ts';
export { type Fault, type Verification, verifyLog } from './verify.ts';
