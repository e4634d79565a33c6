import { parseHeader, parseRecord } from './journal-format.ts';
import { type LogPart, listReadable, readJournalLines, readLogLines } from './log-files.ts';
import { type ParsedEvent, readEvent } from './read-message.ts';

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

/**
 * Events of a JSON log that match, oldest first, over rotated and compressed files. Lines that are no events are passed over.
 * @param range only what came with these sequences; files without a journal have none
 * @throws ColonnadeError `not_found` when there is no log, or one of its files is damaged
 */
export async function* findEvents(
  logPath: string,
  query: Query,
  range?: SequenceRange,
): AsyncGenerator<{ file: string; line: string; event: ParsedEvent }> {
  const matches = createMatcher(query);
  for (const part of await listReadable(logPath)) {
    for await (const line of range === undefined ? readLogLines(part.log) : linesWithin(part, range)) {
      const read = readEvent(Buffer.from(line));
      if (read.ok && matches(read.event)) yield { file: part.name, line, event: read.event };
    }
  }
}

/** The journal says which line came with which sequence; records about the file itself came with none. */
async function* linesWithin(
  { log, journal }: LogPart & { log: string },
  { from, to }: SequenceRange,
): AsyncGenerator<string> {
  if (journal === undefined) return;
  let lines: AsyncGenerator<string> | undefined;
  try {
    for await (const text of readJournalLines(journal)) {
      if (lines === undefined) {
        lines = readLogLines(log, parseHeader(text).base);
        continue;
      }
      const record = parseRecord(text);
      if (record === undefined || record.seq > to) return;
      if (record.kind === 's') continue;
      const line = await lines.next();
      if (line.done === true) return;
      if (record.kind !== 'g' && record.seq >= from) yield line.value;
    }
  } finally {
    await lines?.return(undefined);
  }
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
