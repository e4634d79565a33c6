import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  AUDIT_STREAM,
  auditAnchorSubject,
  auditDeadSubject,
  auditSubject,
  BUS_USERS,
  busRights,
  CONSUMERS,
  ENDPOINTS,
  EVENTS_STREAM,
  eventSubject,
  eventsDeadSubject,
  inboxPrefix,
  STREAMS,
  serviceEventSubject,
  startCall,
} from '@colonnade/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { isRefused } from '../support/bus-refusal.ts';
import { type RealBus, startRealBus } from '../support/real-bus.ts';

/** Subjects that would do harm in the wrong hands, beside those of the endpoints. */
const DANGEROUS = [
  ...STREAMS.flatMap((stream) => [
    `$JS.API.STREAM.PURGE.${stream}`,
    `$JS.API.STREAM.DELETE.${stream}`,
    `$JS.API.STREAM.MSG.DELETE.${stream}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.DIRECT.GET.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}`,
  ]),
  ...CONSUMERS.flatMap(({ stream, durable }) => [
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
    `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
    `$JS.API.CONSUMER.PAUSE.${stream}.${durable}`,
    `$JS.API.CONSUMER.UNPIN.${stream}.${durable}`,
    `$JS.ACK.${stream}.${durable}.1.1.1.1.1`,
  ]),
  '$JS.API.STREAM.CREATE.OTHER',
  '$JS.API.CONSUMER.CREATE.AUDIT',
  '$JS.API.CONSUMER.DURABLE.CREATE.AUDIT.x',
  '$JS.API.CONSUMER.DELETE.AUDIT.x',
  '$JS.ACK.AUDIT.x.1.1.1.1.1',
  '$SYS.REQ.SERVER.PING',
  '$SYS.ACCOUNT.COLONNADE.CONNECT',
  '$KV.any.key',
  'anything.else',
  '$JS.API.CONSUMER.NAMES.AUDIT',
  eventSubject('pillar.created'),
  serviceEventSubject('shop', 'order.placed'),
  eventsDeadSubject('shop'),
  ...(['file', 'webhook', 'ingest'] as const).map(auditDeadSubject),
  ...(['file', 'webhook'] as const).map(auditAnchorSubject),
  ...BUS_USERS.map(auditSubject),
  ...BUS_USERS.map((user) => `${inboxPrefix(user)}.stolen`),
  ...ENDPOINTS.map((e) => e.subject),
];

const SPIED = ['>', '_INBOX.>', 'colonnade.>', '$JS.>', '$SYS.>', ...DANGEROUS];

function matches(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.');
  const given = subject.split('.');
  return (
    wanted.every((w, i) => w === '>' || w === given[i]) &&
    (wanted.at(-1) === '>' || wanted.length === given.length)
  );
}

/** Makes and takes away what others depend on: the last ones to try. */
const CONSUMER_CHANGES = CONSUMERS.flatMap(({ stream, durable }) => [
  `$JS.API.CONSUMER.CREATE.${stream}.${durable}`,
  `$JS.API.CONSUMER.DELETE.${stream}.${durable}`,
]);

describe('NATS rights', () => {
  let bus: RealBus;
  before(async () => {
    bus = await startRealBus({ auditWebhook: true });
  });
  after(async () => bus[Symbol.asyncDispose]());

  for (const user of BUS_USERS) {
    test(`${user} publishes only what its rights name`, async () => {
      const connection = await bus.raw(user);
      const allowed = busRights(user).publish;
      for (const subject of DANGEROUS) {
        const expected = !allowed.some((pattern) => matches(pattern, subject));
        assert.equal(await isRefused(connection, (c) => c.publish(subject, '{}')), expected, subject);
      }
    });

    test(`${user} subscribes only to what its rights name`, async () => {
      const connection = await bus.raw(user);
      const allowed = busRights(user).subscribe.filter((s) => !s.includes(' '));
      for (const subject of SPIED) {
        const expected = !allowed.some((pattern) => matches(pattern, subject));
        const result = await isRefused(connection, (c) => void c.subscribe(subject, { callback: () => {} }));
        assert.equal(result, expected, subject);
      }
    });
  }

  test('an endpoint can be served only in the queue group of its service', async () => {
    const connection = await bus.raw('crypto-kms');
    const subject = 'colonnade.kms.v1.seal.api';
    assert.equal(
      await isRefused(connection, (c) => void c.subscribe(subject, { callback: () => {} })),
      true,
      'no queue',
    );
    assert.equal(
      await isRefused(connection, (c) => void c.subscribe(subject, { queue: 'mine', callback: () => {} })),
      true,
      'another queue',
    );
    assert.equal(
      await isRefused(
        connection,
        (c) => void c.subscribe(subject, { queue: 'crypto-kms', callback: () => {} }),
      ),
      false,
      'its own queue',
    );
  });

  test('nobody but the provisioner makes or changes a stream', async () => {
    for (const user of BUS_USERS.filter((u) => u !== 'provisioner')) {
      const connection = await bus.raw(user);
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 500 });
      await assert.rejects(manager.streams.add({ name: 'OTHER', subjects: ['other.>'] }), user);
      await assert.rejects(manager.streams.purge(AUDIT_STREAM), user);
      await assert.rejects(manager.streams.delete(EVENTS_STREAM), user);
    }
  });

  test('every user can do what it is for: publish its own audit record', async () => {
    for (const user of ['pillar-api', 'pillar-merger', 'crypto-kms', 'audit-sink', 'hook-runner'] as const) {
      const one = await bus.as(user);
      const ack = await one.publishDurable(
        { subject: auditSubject(user), msgId: `rights-${user}`, payload: Buffer.from('{}') },
        startCall(2000),
      );
      assert.equal(ack.duplicate, false);
    }
  });

  test('only the provisioner makes consumers, and takes away only the optional one', async () => {
    for (const user of BUS_USERS) {
      const connection = await bus.raw(user);
      const allowed = busRights(user).publish;
      for (const subject of CONSUMER_CHANGES) {
        const expected = !allowed.includes(subject);
        assert.equal(
          await isRefused(connection, (c) => c.publish(subject, '{}')),
          expected,
          `${user} ${subject}`,
        );
        if (user !== 'provisioner') assert.equal(expected, true, `${user} ${subject}`);
      }
    }
    const provisioner = busRights('provisioner').publish;
    assert.ok(!provisioner.includes('$JS.API.CONSUMER.DELETE.AUDIT.file'));
    assert.ok(provisioner.includes('$JS.API.CONSUMER.DELETE.AUDIT.webhook'));
  });
});
