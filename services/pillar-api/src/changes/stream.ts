import { Readable } from 'node:stream';
import type { ErrorCode } from '@colonnade/contracts';

/** One open answer of server-sent events (HTML Living Standard, 9.2). */
export type EventStream = {
  body: Readable;
  send(event: { name: string; id: string; data: unknown }): void;
  beat(): void;
  /** Says why, and ends; whoever cannot be told within five seconds is cut off. */
  end(code: ErrorCode): void;
};

const LAST_WORD_MS = 5000;

/** @param maxBytes what may wait for the reader; beyond that he is slow, and his stream ends with `overloaded` */
export function createEventStream(maxBytes: number): EventStream {
  const body = new Readable({ read() {} });
  let ended = false;
  const write = (text: string) => {
    if (ended || body.destroyed) return;
    if (body.readableLength + text.length > maxBytes) end('overloaded');
    else body.push(text);
  };
  const end = (code: ErrorCode) => {
    if (ended || body.destroyed) return;
    ended = true;
    body.push(`event: end\ndata: ${JSON.stringify({ code })}\n\n`);
    body.push(null);
    const timer = setTimeout(() => body.destroy(), LAST_WORD_MS);
    timer.unref();
    body.once('close', () => clearTimeout(timer));
  };
  return {
    body,
    // The data has no line breaks, and ids none either: JSON escapes them, and we made the id.
    send: ({ name, id, data }) => write(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`),
    beat: () => write(': beat\n\n'),
    end,
  };
}
