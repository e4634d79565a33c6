import {
  AUDIT_ANCHOR_STREAM,
  type AuditAnchor,
  decode,
  EVENTS_STREAM,
  zAuditAnchor,
} from '@colonnade/contracts';
import type { NatsConnection } from '@nats-io/transport-node';

/** An event of the estate, as it stands in the stream. */
export type StreamedEvent = {
  id: string;
  /** `pillar.updated` */
  type: string;
  tick: number;
  data: Readonly<Record<string, unknown>>;
};

type StreamInfo = { created: string; state: { messages: number; first_seq: number; last_seq: number } };

export async function readStreamInfo(witness: NatsConnection, stream: string): Promise<StreamInfo> {
  return (await witness.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: 5000 })).json<StreamInfo>();
}

/** Every message of a stream that is still there, in its order. */
async function readStream(witness: NatsConnection, stream: string): Promise<Buffer[]> {
  const { first_seq, last_seq } = (await readStreamInfo(witness, stream)).state;
  const messages: Buffer[] = [];
  for (let seq = first_seq; seq <= last_seq && seq > 0; seq++) {
    const query = JSON.stringify({ seq });
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${stream}`, query, { timeout: 5000 });
    const { message, error } = answer.json<{
      message?: { data?: string };
      error?: { description: string };
    }>();
    if (message === undefined) throw new Error(`${stream} ${seq}: ${error?.description}`);
    messages.push(Buffer.from(message.data ?? '', 'base64'));
  }
  return messages;
}

export async function readEvents(witness: NatsConnection): Promise<StreamedEvent[]> {
  return (await readStream(witness, EVENTS_STREAM)).map((bytes) => {
    const event = JSON.parse(bytes.toString('utf8')) as {
      id: string;
      type: string;
      clock: string;
      data: StreamedEvent['data'];
    };
    const type = /^colonnade\.(.+)\.v1$/u.exec(event.type)?.[1] ?? event.type;
    return { id: event.id, type, tick: Number(event.clock), data: event.data };
  });
}

export async function readAnchors(witness: NatsConnection): Promise<AuditAnchor[]> {
  return (await readStream(witness, AUDIT_ANCHOR_STREAM)).map((bytes) => decode(zAuditAnchor, bytes));
}
