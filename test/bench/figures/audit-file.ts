import { randomUUID } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import path from 'node:path';
import { AUDIT_STREAM } from '@colonnade/contracts';
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { eventOf, prepareSink, publish } from '../../../services/audit-sink/test/support.ts';
import { waitFor } from '../../support/wait-for.ts';
import { against, type Figure } from '../figure.ts';
import { interleave } from '../measure.ts';

/** So many that the last batch, which waits to be filled, is no share of the time. */
const EVENTS = 40_000;
const EVENT_BYTES = 2048;
const BATCH = 500;
const AT_ONCE = 128;
const REASON =
  'each record is parsed, looked up among the ids that came before, hashed into the chain and noted in a journal that is synced as well; the bare consumer looks at nothing and syncs once';

/** From the stream into the file, synced: what audit-sink does for each record, beside the least a consumer does. */
export const auditFile: Figure = {
  name: 'audit-file',
  about:
    'audit records a second from the stream into the file, beside a bare consumer that appends and syncs',
  async measure({ repeats }) {
    await using sink = await prepareSink({ maxAuditBytes: 2 ** 30, maxFileBytes: 2 ** 32 });
    const witness = await sink.bus.witness();
    const padding = 'x'.repeat(EVENT_BYTES - 400);
    const ours = async () => {
      await many(() => publish(sink.publisher, eventOf(randomUUID(), { userAgent: padding })));
      const before = await sizeOf(sink.logPath);
      await using _running = await sink.start();
      // Its start is not what is measured.
      const [begun, beganMs] = [await untilLarger(sink.logPath, before), performance.now()];
      await waitFor('the file', () => isDrained(witness), { limitMs: 120_000, everyMs: 10 });
      const seconds = (performance.now() - beganMs) / 1000;
      const end = await sizeOf(sink.logPath);
      return { perSecond: (((end - begun) / (end - before)) * EVENTS) / seconds };
    };
    const floor = await prepareFloor(
      witness,
      path.join(sink.dir, 'floor.log'),
      JSON.stringify(eventOf('x', { userAgent: padding })),
    );
    const found = await interleave(repeats, { ours, floor });
    return [
      against(
        {
          ...{ what: 'audit, stream to file, 2 KB', unit: 'records/s', better: 'higher' },
          ...{ ours: found.ours.perSecond, floor: found.floor.perSecond },
          floorIs: 'a bare JetStream consumer that appends each batch and calls fdatasync',
          reason: REASON,
        },
        { atLeast: 0.6 },
      ),
    ];
  },
};

function perSecond(startedMs: number): number {
  return EVENTS / ((performance.now() - startedMs) / 1000);
}

async function many(one: () => Promise<unknown>): Promise<void> {
  let left = EVENTS;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await one();
    }),
  );
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    (found) => found.size,
    () => 0,
  );
}

async function untilLarger(file: string, than: number): Promise<number> {
  const larger = async () => {
    const size = await sizeOf(file);
    return size > than ? size : undefined;
  };
  return await waitFor('the first lines', larger, { limitMs: 60_000, everyMs: 1 });
}

/** The stream keeps what the file does not have yet. */
async function isDrained(witness: NatsConnection): Promise<boolean> {
  const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
  return info.json<{ state: { messages: number } }>().state.messages === 0;
}

async function prepareFloor(witness: NatsConnection, file: string, text: string) {
  const manager = await jetstreamManager(witness);
  await manager.streams.add({ name: 'FLOOR', subjects: ['floor'], max_bytes: 2 ** 30 });
  await manager.consumers.add('FLOOR', {
    durable_name: 'floor',
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 4 * BATCH,
  });
  const stream = jetstream(witness);
  const consumer = await stream.consumers.get('FLOOR', 'floor');
  return async () => {
    await many(() => stream.publish('floor', text));
    const startedMs = performance.now();
    const log = await open(file, 'a');
    for (let done = 0; done < EVENTS; ) {
      const batch = await consumer.fetch({ max_messages: BATCH, expires: 1000 });
      const messages = [];
      for await (const message of batch) messages.push(message);
      await log.write(messages.map((message) => `${message.string()}\n`).join(''));
      await log.datasync();
      for (const message of messages) message.ack();
      done += messages.length;
    }
    await log.close();
    return { perSecond: perSecond(startedMs) };
  };
}
