import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  AUDIT_ANCHOR_STREAM,
  AUDIT_DEAD_STREAM,
  AUDIT_STREAM,
  auditAnchorSubject,
  auditDeadSubject,
  auditSubject,
  BUS_USERS,
  type BusUser,
  ENDPOINTS,
  EVENTS_DEAD_STREAM,
  EVENTS_STREAM,
  inboxPrefix,
  SERVICE_EVENTS_STREAM,
  STREAMS,
  subjectOf,
  TASK_STATES_STREAM,
  taskStateSubject,
} from '@colonnade/contracts';
import type { NatsConnection } from '@nats-io/transport-node';
import { isRefused } from '../support/bus-refusal.ts';
import { type RealBus, startRealBus } from '../support/real-bus.ts';

/**
 * What SECURITY.md says the nkey of each user reaches, written down by hand: whatever is not here must be refused. The other
 * test of rights holds the server to the rights that are computed; this one holds those to what is promised.
 */
type Reach = {
  /** Endpoints it may ask, without `colonnade.` and the version; `*` stands for the rest. */
  asks: readonly string[];
  /** Events it may publish. */
  events?: readonly string[];
  /** Of streams: `read AUDIT as file`, … */
  streams?: readonly string[];
  deadLetters?: boolean;
};

const EVENTS = [
  ...['pillar.created', 'task.state_changed', 'estate.imported', 'pillar.other', 'estate.other'],
  ...['tls.node_rotated', 'tls.other', 'key.rotated', 'key.other', 'audit.alert', 'audit.other', 'other'],
];

const REACH: Readonly<Record<BusUser, Reach>> = {
  'pillar-api': {
    asks: ['kms.*.api', 'kms.open.workload', 'kms.keys-list', 'kms.jwks', 'merger.explain', 'hooks.*'],
    events: ['pillar.created', 'task.state_changed', 'estate.imported'],
    streams: [
      'say that a task lives',
      'an event of a service',
      'read which tasks live',
      'see EVENTS',
      'see AUDIT',
    ],
  },
  'pillar-merger': { asks: ['kms.open.merger', 'kms.jwks', 'estate.register-minion'] },
  'crypto-kms': { asks: [], events: ['key.rotated'], streams: ['read which tasks live'] },
  'audit-sink': {
    asks: [],
    events: ['audit.alert'],
    streams: ['read AUDIT as file', 'read AUDIT as webhook', 'let AUDIT go', 'anchor', 'see AUDIT'],
    deadLetters: true,
  },
  'tls-rotator': { asks: [], events: ['tls.node_rotated'] },
  'hook-runner': {
    asks: ['merger.compile', 'merger.refresh', 'estate.list-touched'],
    streams: [
      ...['read EVENTS as hook-runner', 'let EVENTS go', 'see EVENTS'],
      'read events of services as hook-runner',
      ...['read EVENTS for generations', 'let EVENTS go for generations'],
    ],
  },
  operator: {
    asks: ['kms.keys-list', 'kms.jwks', 'merger.explain', 'tls.*'],
    streams: [
      'read anchors',
      'read dead letters',
      'read refused events',
      ...STREAMS.map((stream) => `see ${stream}`),
    ],
  },
  provisioner: {
    asks: [],
    streams: STREAMS.flatMap((stream) => [`see ${stream}`, `make ${stream}`, `change ${stream}`]),
  },
};

/** What can be done to streams. Nobody empties or deletes one, takes out a message, or reads all of one. */
const ACTS: Readonly<Record<string, string>> = {
  'say that a task lives': taskStateSubject('t1'),
  'read which tasks live': `$JS.API.DIRECT.GET.${TASK_STATES_STREAM}`,
  'read anchors': `$JS.API.DIRECT.GET.${AUDIT_ANCHOR_STREAM}`,
  'read dead letters': `$JS.API.DIRECT.GET.${AUDIT_DEAD_STREAM}`,
  'read refused events': `$JS.API.DIRECT.GET.${EVENTS_DEAD_STREAM}`,
  'an event of a service': subjectOf('events-external', 'x.y'),
  'read events of services as hook-runner': `$JS.API.CONSUMER.MSG.NEXT.${SERVICE_EVENTS_STREAM}.hook-runner`,
  'read AUDIT as file': `$JS.API.CONSUMER.MSG.NEXT.${AUDIT_STREAM}.file`,
  'read AUDIT as webhook': `$JS.API.CONSUMER.MSG.NEXT.${AUDIT_STREAM}.webhook`,
  'read EVENTS as hook-runner': `$JS.API.CONSUMER.MSG.NEXT.${EVENTS_STREAM}.hook-runner`,
  'read EVENTS for generations': `$JS.API.CONSUMER.MSG.NEXT.${EVENTS_STREAM}.hook-runner-touches`,
  'let EVENTS go for generations': `$JS.ACK.${EVENTS_STREAM}.hook-runner-touches.1.1.1.1.1`,
  'let AUDIT go': `$JS.ACK.${AUDIT_STREAM}.file.1.1.1.1.1`,
  'let EVENTS go': `$JS.ACK.${EVENTS_STREAM}.hook-runner.1.1.1.1.1`,
  anchor: auditAnchorSubject('file'),
  'read records directly': `$JS.API.DIRECT.GET.${AUDIT_STREAM}`,
  'read events directly': `$JS.API.DIRECT.GET.${EVENTS_STREAM}`,
  'a stream of its own': '$JS.API.STREAM.CREATE.OTHER',
  ...Object.fromEntries(
    STREAMS.flatMap((stream) => [
      [`empty ${stream}`, `$JS.API.STREAM.PURGE.${stream}`],
      [`delete ${stream}`, `$JS.API.STREAM.DELETE.${stream}`],
      [`take a message out of ${stream}`, `$JS.API.STREAM.MSG.DELETE.${stream}`],
      [`read a message of ${stream}`, `$JS.API.STREAM.MSG.GET.${stream}`],
      [`a nameless consumer of ${stream}`, `$JS.API.CONSUMER.CREATE.${stream}`],
      [`a consumer of its own of ${stream}`, `$JS.API.CONSUMER.CREATE.${stream}.thief`],
      [`see ${stream}`, `$JS.API.STREAM.INFO.${stream}`],
      [`make ${stream}`, `$JS.API.STREAM.CREATE.${stream}`],
      [`change ${stream}`, `$JS.API.STREAM.UPDATE.${stream}`],
    ]),
  ),
};

function fits(pattern: string, name: string): boolean {
  const [head = '', tail] = pattern.split('*');
  return tail === undefined ? head === name : name.startsWith(head) && name.endsWith(tail);
}

describe('a stolen nkey', () => {
  let bus: RealBus;
  before(async () => {
    bus = await startRealBus({ auditWebhook: true });
  });
  after(() => bus[Symbol.asyncDispose]());

  for (const user of BUS_USERS) {
    const { asks, events = [], streams = [], deadLetters = false } = REACH[user];
    const publishes = (connection: NatsConnection, subject: string) =>
      isRefused(connection, (c) => c.publish(subject, '{}')).then((refused) => !refused);

    test(`of ${user} asks the endpoints it is said to, and no other`, async () => {
      const connection = await bus.raw(user);
      for (const { subject } of ENDPOINTS) {
        const name = subject.replace(/^colonnade\.([a-z-]+)\.v1/u, '$1');
        assert.equal(
          await publishes(connection, subject),
          asks.some((one) => fits(one, name)),
          name,
        );
      }
      for (const pattern of asks)
        assert.ok(
          ENDPOINTS.some(({ subject }) =>
            fits(pattern, subject.replace('colonnade.', '').replace('.v1', '')),
          ),
          pattern,
        );
    });

    test(`of ${user} writes and reads of the streams what it is said to`, async () => {
      const connection = await bus.raw(user);
      for (const [act, subject] of Object.entries(ACTS))
        assert.equal(await publishes(connection, subject), streams.includes(act), act);
      for (const act of streams) assert.ok(act in ACTS, act);
      for (const type of EVENTS)
        assert.equal(await publishes(connection, subjectOf('events', type)), events.includes(type), type);
      for (const kind of ['file', 'webhook', 'ingest'] as const)
        assert.equal(await publishes(connection, auditDeadSubject(kind)), deadLetters, `dead letter ${kind}`);
    });

    test(`of ${user} writes no record of another, and hears and answers for nobody else`, async () => {
      const connection = await bus.raw(user);
      const isNobody = user === 'operator' || user === 'provisioner';
      for (const other of BUS_USERS) {
        const isOwn = other === user;
        assert.equal(
          await publishes(connection, auditSubject(other)),
          isOwn && !isNobody,
          `record of ${other}`,
        );
        const heard = await isRefused(connection, (c) => void c.subscribe(`${inboxPrefix(other)}.>`, QUIET));
        assert.equal(heard, !isOwn, `inbox of ${other}`);
      }
      for (const { subject, server } of ENDPOINTS) {
        const options = { ...QUIET, queue: server };
        const served = await isRefused(connection, (c) => void c.subscribe(subject, options));
        assert.equal(served, server !== user, `in place of ${server}: ${subject}`);
        assert.ok(
          await isRefused(connection, (c) => void c.subscribe(subject, QUIET)),
          `overheard: ${subject}`,
        );
      }
    });
  }
});

const QUIET = { callback: () => {} };
