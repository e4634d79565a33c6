import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError, isErrorCode } from '@colonnade/contracts';
import { usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { readEvents, type ServerEvent } from '../shared/event-stream.ts';
import { queryOf } from '../shared/pages.ts';
import { asList, textOf } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';
import { escapeLine } from '../terminal/escape.ts';

export const changes = defineCommand({
  path: 'changes',
  summary: 'show what changes in the estate, as it changes',
  details:
    'What is to be read again, not what it is now, nor who did it: that is in the history and in the audit log. When the connection is lost it goes on where it was. The estate names its last 10,000 changes; whoever begins before those is told to read everything. With --json each event is a line; its id is what --since takes.',
  options: {
    since: { value: 'CLOCK', help: 'first what changed after this clock, or after the event with this id' },
    once: { help: 'end then, instead of waiting for more' },
  },
  examples: [
    ['changes', 'from now on, until Ctrl-C'],
    ['changes --since 42 --once', 'what changed after clock 42'],
    ["colonnade changes --json | jq -r '.changed[]?'", 'for a program'],
  ],
  async run(session, { options }) {
    const print = createPrinter(session, options.once);
    let last = options.since === undefined ? undefined : await idOf(session, options.since);
    let failures: number | undefined;
    for (;;) {
      try {
        for await (const event of listen(session, last, options.once)) {
          if (event.name === 'end') throw endOf(event);
          failures = 0;
          last = event.id;
          await print(event);
        }
        if (options.once) return;
      } catch (thrown) {
        session.signal.throwIfAborted();
        if (failures === undefined || !isPassing(thrown)) throw thrown;
        if (failures === WAITS_MS.length) throw goOnLater(thrown, last);
      }
      session.out.note(`the stream broke off; going on after ${last}`);
      await delay(WAITS_MS[failures ?? 0], undefined, { signal: session.signal });
      failures = (failures ?? 0) + 1;
    }
  },
});

/** Between tries to go on, milliseconds; after the last one it is given up. */
const WAITS_MS = [1000, 1000, 2000, 5000, 10_000, 10_000];

async function* listen({ api }: Session, last: string | undefined, once: boolean) {
  const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last };
  const query = queryOf({ once: once ? 'true' : undefined });
  const response = await api().stream('GET', `/changes${query}`, { headers });
  yield* readEvents(response.body ?? new ReadableStream());
}

/** An event's id; a clock alone is taken to be of the estate as it is. @throws ColonnadeError `misconfigured` */
async function idOf(session: Session, since: string): Promise<string> {
  if (/^[\w-]{1,64}\.\d{1,15}$/u.test(since)) return since;
  if (!/^\d{1,15}$/u.test(since)) throw usageError(`--since: "${since}" is no clock, nor the id of an event`);
  for await (const { name, id } of listen(session, undefined, true)) {
    if (name === 'ready') return `${id.slice(0, id.lastIndexOf('.'))}.${since}`;
  }
  throw new ColonnadeError('internal', 'the stream of changes does not begin as it should');
}

function createPrinter({ out, json }: Session, once: boolean) {
  const line = (clock: string, kind: string, what: string) =>
    out.line(escapeLine(`${clock.padStart(8)}  ${kind.padEnd(11)}  ${what}`));
  let begun = false;
  return async ({ name, id, data }: ServerEvent): Promise<void> => {
    if (json) return await out.json({ event: name, id, ...data });
    if (!begun) await line('CLOCK', 'KIND', 'WHAT');
    if (!begun && !once && out.isTerminal) out.note('(from now on; Ctrl-C ends it)');
    begun = true;
    const clock = textOf(data.clock);
    if (name === 'reset') await line(clock, 'all', 'everything is to be read again');
    for (const key of asList(data.changed)) {
      const [kind = '', ...rest] = textOf(key).split(':');
      await line(clock, kind, rest.join(':'));
    }
  };
}

function endOf({ data }: ServerEvent): ColonnadeError {
  const code = isErrorCode(data.code) ? data.code : 'internal';
  return new ColonnadeError(code, `the stream of changes ended (${code})`);
}

/** What may be otherwise in a moment; a connection that breaks while it is read is no error of ours. */
function isPassing(thrown: unknown): boolean {
  return thrown instanceof ColonnadeError ? thrown.retryable : thrown instanceof TypeError;
}

function goOnLater(thrown: unknown, last: string | undefined): ColonnadeError {
  const code = thrown instanceof ColonnadeError ? thrown.code : 'unavailable';
  const why = `the stream of changes broke off and cannot go on; later: --since ${last}`;
  return new ColonnadeError(code, why, { cause: thrown });
}
