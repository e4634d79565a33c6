import { listLogParts, readLogLines } from './log-files.ts';
import { type ParsedEvent, readEvent } from './read-message.ts';

/** What to look for; a field that is not given does not matter. Times are RFC 3339, both ends included. */
export type Query = {
  auditID?: string;
  user?: string;
  verb?: string;
  resource?: string;
  namespace?: string;
  name?: string;
  since?: string;
  until?: string;
};

/** Events of a JSON log that match, oldest first, over rotated and compressed files. Lines that are no events are passed over. */
export async function* findEvents(
  logPath: string,
  query: Query,
): AsyncGenerator<{ file: string; line: string; event: ParsedEvent }> {
  const matches = createMatcher(query);
  for (const { name, log } of await listLogParts(logPath)) {
    if (log === undefined) continue;
    for await (const line of readLogLines(log)) {
      const read = readEvent(Buffer.from(line));
      if (read.ok && matches(read.event)) yield { file: name, line, event: read.event };
    }
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
      (resource === undefined || object.resource === resource) &&
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
