import type { JournalRecord } from './journal-format.ts';
import { listReadable } from './log-files.ts';
import { type ParsedEvent, readEvent } from './read-message.ts';
import { readVouched, type Skipped } from './read-vouched.ts';

/** What to look for; a field that is not given does not matter. Times are RFC 3339, both ends included. */
export type Query = {
  auditID?: string;
  user?: string;
  verb?: string;
  /** With or without its subresource: `pillars/reveal`. */
  resource?: string;
  namespace?: string;
  name?: string;
  since?: string;
  until?: string;
};

/** Sequences of the stream, both ends included, as a gap record names them. */
export type SequenceRange = { from: number; to: number };

export type FindOptions = {
  /** Only what came with these sequences. */
  range?: SequenceRange | undefined;
  /** Told of lines that no journal vouches for, once for each file; they are not shown. */
  onSkipped?: (skipped: Skipped) => void;
};

/**
 * Events of a JSON log that match, oldest first, over rotated and compressed files. Lines that are no events are passed over, and
 * so is what is not the line that the journal beside the log vouches for.
 * @throws ColonnadeError `not_found` when there is no log, or one of its files is damaged
 */
export async function* findEvents(
  logPath: string,
  query: Query,
  { range, onSkipped = () => {} }: FindOptions = {},
): AsyncGenerator<{ file: string; line: string; event: ParsedEvent }> {
  const matches = createMatcher(query);
  for (const part of await listReadable(logPath)) {
    for await (const { record, bytes } of readVouched(part, onSkipped)) {
      if (range !== undefined && !isWithin(record, range)) continue;
      const read = readEvent(bytes);
      if (read.ok && matches(read.event)) yield { file: part.name, line: read.text, event: read.event };
    }
  }
}

/** Records about the file itself came with no sequence. */
function isWithin({ kind, seq }: JournalRecord, { from, to }: SequenceRange): boolean {
  return kind !== 'g' && seq >= from && seq <= to;
}

/** Whether an event is one that is looked for. */
export function createMatcher(query: Query): (event: ParsedEvent) => boolean {
  const [since, until] = [timeOf(query.since), timeOf(query.until)];
  const { auditID, user, verb, resource, namespace, name } = query;
  return (event) => {
    const object = (event.objectRef ?? {}) as Record<string, unknown>;
    const { username } = (event.user ?? {}) as Record<string, unknown>;
    const time = Date.parse(String(event.stageTimestamp));
    return (
      (auditID === undefined || event.auditID === auditID) &&
      (user === undefined || username === user) &&
      (verb === undefined || event.verb === verb) &&
      (resource === undefined ||
        object.resource === resource ||
        `${object.resource}/${object.subresource}` === resource) &&
      (namespace === undefined || object.namespace === namespace) &&
      (name === undefined || object.name === name) &&
      (since === undefined || time >= since) &&
      (until === undefined || time <= until)
    );
  };
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}
