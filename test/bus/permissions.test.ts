import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  AUDIT_STREAM,
  auditSubject,
  BUS_USERS,
  type BusUser,
  busRights,
  ENDPOINTS,
  EVENTS_STREAM,
  eventSubject,
  inboxPrefix,
  startCall,
} from '@colonnade/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import { type RealBus, startRealBus } from '../support/real-bus.ts';

/** Subjects that would do harm in the wrong hands, beside those of the endpoints. */
const DANGEROUS = [
  '$JS.API.STREAM.PURGE.AUDIT',
  '$JS.API.STREAM.DELETE.AUDIT',
  '$JS.API.STREAM.MSG.DELETE.AUDIT',
  '$JS.API.STREAM.MSG.GET.AUDIT',
  '$JS.API.DIRECT.GET.AUDIT',
  '$JS.API.STREAM.PURGE.EVENTS',
  '$JS.API.STREAM.DELETE.EVENTS',
  '$JS.API.STREAM.CREATE.OTHER',
  '$JS.API.CONSUMER.CREATE.AUDIT',
  '$JS.API.CONSUMER.DURABLE.CREATE.AUDIT.x',
  '$JS.API.CONSUMER.DELETE.AUDIT.x',
  '$JS.ACK.AUDIT.x.1.1.1.1.1',
  '$SYS.REQ.SERVER.PING',
  '$SYS.ACCOUNT.COLONNADE.CONNECT',
  '$KV.any.key',
  'anything.else',
  eventSubject('pillar.created'),
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

/** Tries one operation and says whether the server refused it. */
async function refused(connection: NatsConnection, attempt: (c: NatsConnection) => void): Promise<boolean> {
  const statuses = connection.status();
  let violation = false;
  const watching = (async () => {
    for await (const status of statuses) {
      if (status.type === 'error' && status.error instanceof errors.PermissionViolationError) {
        violation = true;
        return;
      }
      if (status.type === 'close') return;
    }
  })();
  attempt(connection);
  await connection.flush();
  await connection.flush();
  (statuses as AsyncIterable<unknown> & { stop?: () => void }).stop?.();
  void watching;
  return violation;
}

describe('NATS rights', () => {
  let bus: RealBus;
  before(async () => {
    bus = await startRealBus();
  });
  after(async () => bus[Symbol.asyncDispose]());

  for (const user of BUS_USERS) {
    test(`${user} publishes only what its rights name`, async () => {
      const connection = await bus.raw(user);
      const allowed = busRights(user).publish;
      for (const subject of DANGEROUS) {
        const expected = !allowed.some((pattern) => matches(pattern, subject));
        assert.equal(await refused(connection, (c) => c.publish(subject, '{}')), expected, subject);
      }
    });

    test(`${user} subscribes only to what its rights name`, async () => {
      const connection = await bus.raw(user);
      const allowed = busRights(user).subscribe.filter((s) => !s.includes(' '));
      for (const subject of SPIED) {
        const expected = !allowed.some((pattern) => matches(pattern, subject));
        const result = await refused(connection, (c) => void c.subscribe(subject, { callback: () => {} }));
        assert.equal(result, expected, subject);
      }
    });
  }

  test('an endpoint can be served only in the queue group of its service', async () => {
    const connection = await bus.raw('crypto-kms');
    const subject = 'colonnade.kms.v1.seal.api';
    assert.equal(
      await refused(connection, (c) => void c.subscribe(subject, { callback: () => {} })),
      true,
      'no queue',
    );
    assert.equal(
      await refused(connection, (c) => void c.subscribe(subject, { queue: 'mine', callback: () => {} })),
      true,
      'another queue',
    );
    assert.equal(
      await refused(
        connection,
        (c) => void c.subscribe(subject, { queue: 'crypto-kms', callback: () => {} }),
      ),
      false,
      'its own queue',
    );
  });

  test('a wrong password and no user at all are refused', async () => {
    await assert.rejects(bus.as('nobody' as BusUser), { code: 'bus_unavailable' });
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
    for (const user of ['pillar-api', 'pillar-merger', 'crypto-kms'] as const) {
      const one = await bus.as(user);
      const ack = await one.publishDurable(
        { subject: auditSubject(user), msgId: `rights-${user}`, payload: Buffer.from('{}') },
        startCall(2000),
      );
      assert.equal(ack.duplicate, false);
    }
  });
});
