import { ColonnadeError } from '@colonnade/contracts';
import type { Msg } from '@nats-io/transport-node';

/** Why a pull is over: full, nothing more in time, the next message would not fit, or given up by us. */
type PullEnd = 'full' | 'time' | 'bytes' | 'stopped';

export type PullResult<T> = { messages: T[]; end: PullEnd };

/** A consumer that is not there answers nothing: the server says 503, as while it starts. Only the provisioner can make one. */
function faultText(what: string, code: number, description: string): string {
  const said = `${what} cannot be read: ${code} ${description}`.trim();
  if (code !== 503 && !/deleted/iu.test(description)) return said;
  return `${said}; if JetStream runs, this consumer is missing: provision the streams anew (scripts/provision.ts streams)`;
}

/** One request for messages that is under way. */
export type PullWait<T> = {
  take(message: T): void;
  status(message: Msg): void;
  fail(error: ColonnadeError): void;
  /** Nothing more will come. */
  giveUp(): void;
  ended: Promise<PullResult<T>>;
};

/** More than a server needs to say that a pull is over. */
const GRACE_MS = 2000;

export function createPullWait<T>(options: {
  /** The reply subject of this pull; a status of an earlier one is none of ours. */
  token: string;
  room: number;
  waitMs: number;
  signal: AbortSignal | undefined;
  /** For error texts. */
  what: string;
}): PullWait<T> {
  const messages: T[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<PullResult<T>>();
  const finish = (end: PullEnd) => resolve({ messages, end });
  // What came before the fault is not lost: the next pull meets the fault again.
  const fail = (error: ColonnadeError) => (messages.length > 0 ? finish('time') : reject(error));
  const timer = setTimeout(() => finish('time'), options.waitMs + GRACE_MS);
  const stop = () => finish('stopped');
  options.signal?.addEventListener('abort', stop, { once: true });
  const ended = promise.finally(() => {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', stop);
  });
  return {
    take(message) {
      messages.push(message);
      if (messages.length >= options.room) finish('full');
    },
    status(message) {
      if (message.subject !== options.token) return;
      const { code = 0, description = '' } = message.headers ?? {};
      if (code === 100) return;
      if (code === 409 && /maxbytes/iu.test(description)) return finish('bytes');
      if (code === 404 || code === 408 || (code === 409 && !/deleted/iu.test(description)))
        return finish('time');
      fail(new ColonnadeError('bus_unavailable', faultText(options.what, code, description)));
    },
    fail,
    giveUp: () => finish('time'),
    ended,
  };
}
