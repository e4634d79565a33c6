import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AUDIT_STREAM, auditSubject, EVENTS_STREAM, kmsSeal } from '@colonnade/contracts';
import { AckPolicy, DeliverPolicy, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a value looks like on its way to be sealed. */
const ON_ITS_WAY = '{"items":[{"value":"correct horse"}]}';

const SECOND_NS = 1_000_000_000;

/** NATS has no finer right than to change a stream, or to make a consumer of one: so much is in the provisioner's hands. */
describe('a stolen nkey of the provisioner', () => {
  let bus: RealBus;
  let manager: JetStreamManager;
  const heard: string[] = [];
  before(async () => {
    bus = await startRealBus({ auditWebhook: true });
    const thief = await bus.raw('provisioner');
    manager = await jetstreamManager(thief, { checkAPI: false });
    const callback = (_: unknown, { data }: { data: Uint8Array }) =>
      void heard.push(Buffer.from(data).toString());
    thief.subscribe('_INBOX.provisioner.stolen', { callback });
  });
  after(() => bus[Symbol.asyncDispose]());

  const publish = async (user: 'pillar-api', subject: string, text: string) => {
    const connection = await bus.raw(user);
    connection.publish(subject, text);
    await connection.flush();
  };
  const held = async (stream: string) => (await manager.streams.info(stream)).state.messages;

  test('reads records, by a consumer that delivers to its own inbox', async () => {
    await manager.consumers.delete(AUDIT_STREAM, 'webhook');
    await manager.consumers.add(AUDIT_STREAM, {
      ...{ durable_name: 'webhook', deliver_subject: '_INBOX.provisioner.stolen' },
      ...{ ack_policy: AckPolicy.None, deliver_policy: DeliverPolicy.All },
    });
    await publish('pillar-api', auditSubject('pillar-api'), '{"a":"record"}');
    await waitFor('the record', () => heard.includes('{"a":"record"}'));
  });

  test('has a stream take in requests, so it reads what is on its way to be sealed', async () => {
    const { config } = await manager.streams.info(AUDIT_STREAM);
    await manager.streams.update(AUDIT_STREAM, {
      ...config,
      subjects: [...config.subjects, kmsSeal.subject],
      no_ack: true,
    });
    await publish('pillar-api', kmsSeal.subject, ON_ITS_WAY);
    await waitFor('the value', () => heard.includes(ON_ITS_WAY));
  });

  test('makes a stream forget', async () => {
    for (let i = 0; i < 3; i += 1) await publish('pillar-api', 'colonnade.events.v1.pillar.created', '{}');
    await waitFor('the events', async () => (await held(EVENTS_STREAM)) === 3);
    const { config } = await manager.streams.info(EVENTS_STREAM);
    await manager.streams.update(EVENTS_STREAM, {
      ...config,
      max_age: SECOND_NS,
      duplicate_window: SECOND_NS,
    });
    await waitFor('them to be gone', async () => (await held(EVENTS_STREAM)) === 0);
  });

  test('asks no service anything, publishes nothing, and empties or deletes no stream', async () => {
    const raw = await bus.raw('provisioner');
    await assert.rejects(raw.request(kmsSeal.subject, ON_ITS_WAY, { timeout: 500 }));
    for (const stream of [AUDIT_STREAM, EVENTS_STREAM]) {
      await assert.rejects(manager.streams.purge(stream));
      await assert.rejects(manager.streams.delete(stream));
    }
  });
});
