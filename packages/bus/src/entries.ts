import { ColonnadeError } from '@colonnade/contracts';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { fromNatsError } from './wire-error.ts';

/** One entry of a key-value bucket: the newest message of its subject. */
export type BucketEntry = { subject: string; seq: number; payload: Uint8Array };

export type PutOptions = {
  /** Only where the subject has no entry. */
  ifAbsent?: boolean;
  /** Seconds after which the entry goes by itself. */
  ttlS?: number;
};

/** Messages in one answer of the server. */
const AT_ONCE = 1000;
/** The server's code for: nothing is behind this sequence. A stream that is not there does not answer at all. */
const NOTHING_MORE = 404;
/** The server's code for an expectation that does not hold. */
const WRONG_LAST_SEQUENCE = 10071;

/**
 * Entries of a bucket's stream behind a sequence, in their order. Read by direct get and not by a consumer: who may make
 * a consumer can have messages delivered to any subject.
 * @throws ColonnadeError `unavailable`, `bus_unavailable`
 */
export async function readEntries(
  connection: NatsConnection,
  stream: string,
  afterSeq: number,
): Promise<BucketEntry[]> {
  const entries: BucketEntry[] = [];
  try {
    const { direct } = await jetstreamManager(connection, { checkAPI: false });
    for (let seq = afterSeq + 1; ; ) {
      const batch = await direct.getBatch(stream, { seq, batch: AT_ONCE, next_by_subj: '>' });
      let count = 0;
      for await (const { subject, seq: at, data: payload } of batch) {
        entries.push({ subject, seq: at, payload });
        seq = at + 1;
        count += 1;
      }
      if (count < AT_ONCE) return entries;
    }
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code === NOTHING_MORE) return entries;
    throw fromNatsError(thrown, stream);
  }
}

/**
 * Writes one entry, and waits until it is stored.
 * @returns false when there is one already and `ifAbsent` was asked for
 * @throws ColonnadeError `bus_unavailable`
 */
export async function putEntry(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array,
  { ifAbsent = false, ttlS }: PutOptions = {},
): Promise<boolean> {
  try {
    await jetstream(connection).publish(subject, payload, {
      retries: 1,
      ...(ifAbsent ? { expect: { lastSubjectSequence: 0 } } : {}),
      ...(ttlS === undefined ? {} : { ttl: `${ttlS}s` }),
    });
    return true;
  } catch (thrown) {
    if (ifAbsent && (thrown as { code?: unknown }).code === WRONG_LAST_SEQUENCE) return false;
    const error = fromNatsError(thrown, subject);
    throw new ColonnadeError('bus_unavailable', `${subject}: not stored by the bucket`, {
      cause: error.cause ?? error,
    });
  }
}
