import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DONE } from '@colonnade/bus';
import {
  AUDIT_ANCHOR_STREAM,
  AUDIT_STREAM,
  AUDIT_SUBJECTS,
  auditAnchorSubject,
  auditFileConsumer,
  auditSubject,
  EVENTS_DEAD_STREAM,
  SERVICE_EVENTS_STREAM,
  STREAMS,
  startCall,
} from '@colonnade/contracts';
import { jetstreamManager, RetentionPolicy } from '@nats-io/jetstream';
import { provisionStreams } from '../../packages/bus/src/streams.ts';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

const SIZES = { maxEventsBytes: 16 * 1024 * 1024, maxAuditBytes: 16 * 1024 * 1024, replicas: 1 };

describe('the streams', () => {
  let bus: RealBus;
  before(async () => {
    bus = await startRealBus();
  });
  after(() => bus[Symbol.asyncDispose]());

  const manager = async () => jetstreamManager(await bus.witness());
  const publish = async (id: string) => {
    const api = await bus.as('pillar-api');
    await api.publishDurable(
      { subject: auditSubject('pillar-api'), msgId: id, payload: Buffer.from(id) },
      startCall(2000),
    );
  };
  const provision = async (auditWebhook: boolean) =>
    (await bus.as('provisioner')).provisionStreams({ ...SIZES, auditWebhook });
  const consumers = async () => {
    const names: string[] = [];
    for await (const { name } of (await manager()).consumers.list(AUDIT_STREAM)) names.push(name);
    return names.sort();
  };

  test('AUDIT keeps what its consumers have not acknowledged; nobody can purge it or delete from it', async () => {
    const { config } = await (await manager()).streams.info(AUDIT_STREAM);
    assert.equal(config.retention, RetentionPolicy.Interest);
    assert.deepEqual([config.deny_purge, config.deny_delete, config.discard], [true, true, 'new']);
    assert.equal(config.max_age, 0);
    await publish('kept');
    await assert.rejects((await manager()).streams.purge(AUDIT_STREAM));
    const { state } = await (await manager()).streams.info(AUDIT_STREAM);
    assert.equal(state.messages, 1);
  });

  test('refused events make room for new ones, of each service by itself; events of services do not', async () => {
    const raw = await manager();
    const { config: dead } = await raw.streams.info(EVENTS_DEAD_STREAM);
    assert.deepEqual([dead.discard, dead.max_msgs_per_subject, dead.deny_delete], ['old', 50, true]);
    const { config: events } = await raw.streams.info(SERVICE_EVENTS_STREAM);
    assert.deepEqual([events.discard, events.max_bytes], ['new', SIZES.maxEventsBytes / 4]);
    assert.ok(events.duplicate_window >= 3_600_000_000_000);
  });

  test('anchors make room for new ones, whoever writes those: as many as the stream holds push out the true ones', async () => {
    const raw = await manager();
    const { config } = await raw.streams.info(AUDIT_ANCHOR_STREAM);
    assert.deepEqual([config.discard, config.deny_purge, config.deny_delete], ['old', true, true]);
    const thief = await bus.raw('audit-sink');
    const anchor = (text: string) => thief.publish(auditAnchorSubject('file'), text);
    anchor('the true one');
    await thief.flush();
    const firstSeq = async () => (await raw.streams.info(AUDIT_ANCHOR_STREAM)).state.first_seq;
    const before = await waitFor('it to be stored', async () => {
      const { state } = await raw.streams.info(AUDIT_ANCHOR_STREAM);
      return state.messages > 0 ? state.last_seq : undefined;
    });
    for (let bytes = 0; bytes < config.max_bytes; bytes += 4096) anchor('x'.repeat(4096));
    await thief.flush();
    await waitFor('it to be gone', async () => (await firstSeq()) > before);
  });

  test('what a stream held before it trimmed itself is kept for the consumers', async () => {
    const raw = await manager();
    await raw.streams.delete(AUDIT_STREAM);
    await raw.streams.add({
      name: AUDIT_STREAM,
      subjects: [AUDIT_SUBJECTS],
      retention: RetentionPolicy.Limits,
      max_age: 30 * 86_400_000_000_000,
      max_bytes: SIZES.maxAuditBytes,
    });
    for (const id of ['old-1', 'old-2', 'old-3']) await publish(id);
    await provision(false);
    const seen: string[] = [];
    const stop = new AbortController();
    const sink = await bus.as('audit-sink');
    const reading = sink.consume(
      auditFileConsumer,
      {
        pull: () => ({ maxMessages: 10, maxBytes: 1_000_000, waitMs: 200, fillMs: 0 }),
        confirm: true,
        onFailure: () => {},
        handle: async (batch) => {
          seen.push(...batch.map(({ payload }) => Buffer.from(payload).toString()));
          return batch.map(() => DONE);
        },
      },
      stop.signal,
    );
    await waitFor('all', () => seen.length >= 3);
    stop.abort();
    await reading;
    assert.deepEqual(seen, ['old-1', 'old-2', 'old-3']);
    assert.equal((await raw.streams.info(AUDIT_STREAM)).config.max_age, 0);
  });

  test('the webhook has a consumer only where there is a webhook; without it nothing waits for it', async () => {
    assert.deepEqual(await consumers(), ['file']);
    await provision(true);
    assert.deepEqual(await consumers(), ['file', 'webhook']);
    await provision(true);
    await provision(false);
    assert.deepEqual(await consumers(), ['file']);
  });

  test('that the server gives no answer is not taken for a stream or a consumer that is not there', async () => {
    const connection = await bus.raw('provisioner');
    const asked: string[] = [];
    const failing = (what: RegExp) =>
      new Proxy(connection, {
        get(target, property) {
          const member: unknown = Reflect.get(target, property, target);
          if (typeof member !== 'function') return member;
          if (property !== 'request') return member.bind(target);
          return (subject: string, ...rest: unknown[]) => {
            asked.push(subject);
            if (what.test(subject)) throw new Error('no answer within the time');
            return member.call(target, subject, ...rest);
          };
        },
      });
    for (const what of [/STREAM\.INFO\.EVENTS/u, /CONSUMER\.INFO/u]) {
      asked.length = 0;
      await assert.rejects(provisionStreams(failing(what), SIZES), /no answer/u);
      assert.match(asked.at(-1) ?? '', what);
    }
  });

  test('provisioning again changes nothing but sizes', async () => {
    const raw = await manager();
    const configs = async () => Promise.all(STREAMS.map(async (s) => (await raw.streams.info(s)).config));
    const before = await configs();
    await provision(false);
    assert.deepEqual(await configs(), before);
  });
});
