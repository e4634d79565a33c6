import type { BulkRecord } from '@colonnade/contracts';

/** Why a file is not taken; `line` from 1. */
export type Problem = { file: string; line?: number; reason: string };

/** What somebody should look at. */
export type Note = { file: string; reason: string };

/** With problems, the records are not all there are, and should not be imported. */
export type Converted = {
  records: BulkRecord[];
  problems: Problem[];
  notes: Note[];
  /** The globs of secrets by which a pillar is to be sealed. */
  sealed: ReadonlySet<string>;
};
