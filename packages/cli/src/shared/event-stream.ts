import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import { parseValue, type ValueObject } from '@colonnade/value';
import { asObject } from './view.ts';

/** One event of a stream that pillar-api keeps open. */
export type ServerEvent = { name: string; id: string; data: ValueObject };

/** Twice what the API lets wait for a reader: no event is as large. */
const MAX_CHARS = 2 * LIMITS.changeBacklogBytes;

/**
 * Server-sent events (HTML Living Standard, 9.2) as they come; comments are left out.
 * @throws ColonnadeError `internal` for what is no such stream, and whatever the connection throws
 */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    const parts = text.split(/\r?\n\r?\n/u);
    text = parts.pop() ?? '';
    if (text.length > MAX_CHARS) throw new ColonnadeError('internal', 'an event of the stream has no end');
    for (const part of parts) {
      const event = readEvent(part);
      if (event !== undefined) yield event;
    }
  }
}

function readEvent(part: string): ServerEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of part.split(/\r?\n/u)) {
    const [, name, value] = /^([a-z]+): ?(.*)$/u.exec(line) ?? [];
    if (name !== undefined) fields.set(name, value ?? '');
  }
  const data = fields.get('data');
  if (data === undefined) return undefined;
  return {
    ...{ name: fields.get('event') ?? 'message', id: fields.get('id') ?? '' },
    data: asObject(parseValue(data)),
  };
}
