import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Bus, type ConsumeOptions, type Delivery, DONE, type Verdict } from '@colonnade/bus';
import {
  AUDIT_STREAM,
  auditFileConsumer,
  auditSubject,
  auditWebhookConsumer,
  EVENTS_STREAM,
  kmsMac,
  startCall,
} from '@colonnade/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

const PULL = { maxMessages: 10, maxBytes: 8 * 1024 * 1024, waitMs: 500, fillMs: 0 };

describe('a durable consumer', () => {
  let bus: RealBus;
  let api: Bus;
  let sink: Bus;
  before(async () => {
    bus = await startRealBus({ auditWebhook: true });
    api = await bus.as('pillar-api');
    sink = await bus.as('audit-sink');
  });
  after(() => bus[Symbol.asyncDispose]());

  const publish = async (...texts: string[]) => {
    for (const text of texts) {
      const message = {
        subject: auditSubject('pillar-api'),
        msgId: randomUUID(),
        payload: Buffer.from(text),
      };
      await api.publishDurable(message, startCall(5000));
    }
  };
  const textOf = ({ payload }: Delivery) => Buffer.from(payload).toString();

  /** Reads until the work is done, with what each batch was given. */
  const reading = async (
    consumer: typeof auditFileConsumer,
    handle: ConsumeOptions['handle'],
    work: (batches: string[][]) => Promise<void>,
    changes: Partial<ConsumeOptions> = {},
  ) => {
    const batches: string[][] = [];
    const stop = new AbortController();
    const done = sink.consume(
      consumer,
      {
        pull: () => PULL,
        confirm: true,
        onFailure: () => {},
        ...changes,
        handle: (batch, signal) => {
          batches.push(batch.map(textOf));
          return handle(batch, signal);
        },
      },
      stop.signal,
    );
    try {
      await work(batches);
    } finally {
      stop.abort();
      await done;
    }
    return batches;
  };
  const allDone: ConsumeOptions['handle'] = async (batch) => batch.map(() => DONE);
  /** Empties both consumers, so that each test begins with nothing waiting. */
  beforeEach(async () => {
    for (const consumer of [auditFileConsumer, auditWebhookConsumer]) {
      await reading(consumer, allDone, async () => {
        await waitFor('nothing waiting', async () => (await sink.consumerState(consumer)).waiting === 0);
      });
    }
  });

  test('gives batches in the order of the stream, of the size asked for, and trims what both have', async () => {
    const texts = Array.from({ length: 35 }, (_, i) => `m${i}`);
    await publish(...texts);
    for (const consumer of [auditFileConsumer, auditWebhookConsumer]) {
      const batches = await reading(consumer, allDone, async (seen) => {
        await waitFor('all', () => seen.flat().length >= 35);
      });
      assert.deepEqual(batches.flat(), texts);
      assert.ok(batches.every((batch) => batch.length <= 10));
    }
    const { stream, waiting } = await sink.consumerState(auditFileConsumer);
    assert.deepEqual([waiting, stream.bytes], [0, 0]);
  });

  test('an unknown failure is an alert, and everything comes again', async () => {
    await publish('one', 'two');
    const alerts: [string, number][] = [];
    let left = 2;
    const batches = await reading(
      auditWebhookConsumer,
      async (batch) => {
        left -= 1;
        if (left >= 0) throw new Error('who knows');
        return batch.map(() => DONE);
      },
      async () => {
        await waitFor('both', async () => (await sink.consumerState(auditWebhookConsumer)).waiting === 0);
      },
      { onFailure: (error, attempt) => alerts.push([error.code, attempt]) },
    );
    assert.ok(alerts.length >= 2 && alerts.every(([code]) => code === 'internal'));
    assert.deepEqual(new Set(batches.flat()), new Set(['one', 'two']));
  });

  test('poison is given up only after its dead letter is stored', async () => {
    await publish('good', 'poison', 'better');
    let buried = 0;
    const batches = await reading(
      auditWebhookConsumer,
      async (batch) =>
        batch.map((d): Verdict => {
          if (textOf(d) !== 'poison') return DONE;
          return {
            kind: 'poison',
            bury: async () => {
              buried += 1;
              if (buried < 3) throw new Error('the dead letters are full');
            },
          };
        }),
      async () => {
        await waitFor(
          'nothing left',
          async () => (await sink.consumerState(auditWebhookConsumer)).waiting === 0,
        );
      },
    );
    assert.equal(buried, 3);
    assert.deepEqual(batches.flat().filter((text) => text === 'poison').length, 3);
    assert.deepEqual(batches.flat().filter((text) => text === 'good').length, 1);
  });

  test('with one acknowledgement for all, nothing after a message that comes again is acknowledged', async () => {
    await publish('a', 'b', 'c', 'd');
    let first = true;
    const batches = await reading(
      auditFileConsumer,
      async (batch) =>
        batch.map((d): Verdict => {
          if (!first || textOf(d) !== 'b') return DONE;
          first = false;
          return { kind: 'later', delayMs: 50 };
        }),
      async () => {
        await waitFor(
          'nothing left',
          async () => (await sink.consumerState(auditFileConsumer)).waiting === 0,
        );
      },
    );
    const times = (text: string) => batches.flat().filter((t) => t === text).length;
    assert.deepEqual([times('a'), times('b'), times('c'), times('d')], [1, 2, 2, 2]);
  });

  test('a batch that takes longer than the wait does not come twice', async () => {
    await publish('slow');
    const batches = await reading(
      auditFileConsumer,
      async (batch) => {
        await new Promise((resolve) => setTimeout(resolve, auditFileConsumer.ackWaitMs * 1.7));
        return batch.map(() => DONE);
      },
      async () => {
        await waitFor('it', async () => (await sink.consumerState(auditFileConsumer)).waiting === 0);
      },
    );
    assert.deepEqual(batches, [['slow']]);
  });

  test('waits for a full batch as long as it may, and not longer', async () => {
    await publish('x1');
    const batches = await reading(
      auditWebhookConsumer,
      allDone,
      async (seen) => {
        await publish('x2', 'x3');
        await waitFor('the batch', () => seen.flat().length === 3);
      },
      { pull: () => ({ ...PULL, fillMs: 700 }) },
    );
    assert.deepEqual(batches[0], ['x1', 'x2', 'x3']);
  });

  test('what was being fetched at the end is given to the next reader at once', async () => {
    await publish('p1', 'p2', 'p3');
    const one = () => ({ ...PULL, maxMessages: 1 });
    const stop = new AbortController();
    const seen: string[] = [];
    await sink.consume(
      auditWebhookConsumer,
      {
        pull: one,
        confirm: true,
        onFailure: () => {},
        handle: async (batch) => {
          seen.push(...batch.map(textOf));
          stop.abort();
          return batch.map(() => DONE);
        },
      },
      stop.signal,
    );
    const started = performance.now();
    const rest = await reading(auditWebhookConsumer, allDone, async (batches) => {
      await waitFor('the rest', () => seen.length + batches.flat().length >= 3);
    });
    assert.ok(performance.now() - started < auditWebhookConsumer.ackWaitMs / 2);
    assert.deepEqual([...seen, ...rest.flat()], ['p1', 'p2', 'p3']);
  });

  test('goes on after a restart of the server', async () => {
    await reading(auditFileConsumer, allDone, async (seen) => {
      await publish('before');
      await waitFor('before', () => seen.flat().includes('before'));
      await bus.nats.kill('SIGKILL');
      await bus.nats.restart();
      await waitFor('the bus', async () => {
        await publish('after');
        return true;
      });
      await waitFor('after', () => seen.flat().includes('after'), { limitMs: 20_000 });
    });
  });

  test('a confirmation that does not come costs none of the batches behind it', async () => {
    const texts = Array.from({ length: 40 }, (_, i) => `kept-${i}`);
    await publish(...texts);
    const manager = await jetstreamManager(await bus.witness());
    let stopped = false;
    let alerts = 0;
    await reading(
      auditWebhookConsumer,
      async (batch) => {
        if (!stopped) {
          stopped = true;
          const taken = async () => (await manager.consumers.info(AUDIT_STREAM, 'webhook')).num_ack_pending;
          await waitFor('the next batch to be fetched', async () => (await taken()) >= 20);
          await bus.nats.kill('SIGSTOP');
        }
        return batch.map(() => DONE);
      },
      async (seen) => {
        await waitFor('the alert', () => alerts > 0);
        await bus.nats.kill('SIGCONT');
        await waitFor('all', () => texts.every((text) => seen.flat().includes(text)), { limitMs: 25_000 });
        const nothingLeft = async () => (await sink.consumerState(auditWebhookConsumer)).waiting === 0;
        await waitFor('nothing left', nothingLeft, { limitMs: 25_000 });
      },
      {
        onFailure: () => {
          alerts += 1;
        },
      },
    );
  });

  test('while a confirmation is waited for, the next batch is handled, and no third one', async () => {
    await publish(...Array.from({ length: 40 }, (_, i) => `ahead-${i}`));
    const manager = await jetstreamManager(await bus.witness());
    const taken = async () => (await manager.consumers.info(AUDIT_STREAM, 'webhook')).num_ack_pending;
    let handled = 0;
    let handledAtAlert: number | undefined;
    await reading(
      auditWebhookConsumer,
      async (batch) => {
        if (handled === 0) {
          await waitFor('the next batch to be sent', async () => (await taken()) >= 20);
          // Behind it on the same connection: then the batch is here too.
          await sink.ping();
          await bus.nats.kill('SIGSTOP');
        }
        handled += 1;
        return batch.map(() => DONE);
      },
      async () => {
        try {
          await waitFor('the alert', () => handledAtAlert !== undefined);
        } finally {
          await bus.nats.kill('SIGCONT');
        }
        assert.equal(handledAtAlert, 2);
        const nothingLeft = async () => (await sink.consumerState(auditWebhookConsumer)).waiting === 0;
        await waitFor('nothing left', nothingLeft, { limitMs: 25_000 });
      },
      {
        onFailure: () => {
          handledAtAlert ??= handled;
        },
      },
    );
  });

  test('who is not there yet says so', async () => {
    const manager = await jetstreamManager(await bus.witness());
    const { stream, durable } = auditWebhookConsumer;
    await manager.consumers.delete(stream, durable);
    await assert.rejects(sink.consumerState(auditWebhookConsumer), { code: 'not_found' });
    const sizes = { maxEventsBytes: 16 * 1024 * 1024, maxAuditBytes: 16 * 1024 * 1024, replicas: 1 };
    await (await bus.as('provisioner')).provisionStreams({ ...sizes, auditWebhook: true });
    assert.equal((await sink.consumerState(auditWebhookConsumer)).waiting, 0);
  });

  test('a reader that names a foreign reply subject reaches no API and no endpoint with it', async () => {
    // The server delivers to whatever subject a pull names, with its own rights: NATS has no fence there.
    let handled = 0;
    const kms = await bus.as('crypto-kms');
    await kms.serve({ name: 'crypto-kms', version: '0.1.0', description: 'test' }, [
      {
        endpoint: kmsMac,
        handle: async () => {
          handled += 1;
          return { mac_hex: 'ab'.repeat(32) };
        },
      },
    ]);
    const manager = await jetstreamManager(await bus.witness());
    const streams = async () =>
      Promise.all(
        [AUDIT_STREAM, EVENTS_STREAM].map(async (s) => (await manager.streams.info(s)).config.max_bytes),
      );
    const before = await streams();
    const thief = await bus.raw('audit-sink');
    const { stream, durable } = auditWebhookConsumer;
    for (const reply of [
      `$JS.API.STREAM.PURGE.${EVENTS_STREAM}`,
      `$JS.API.STREAM.DELETE.${EVENTS_STREAM}`,
      `$JS.API.STREAM.UPDATE.${AUDIT_STREAM}`,
      kmsMac.subject,
    ]) {
      await publish(`{"sha256_hex":"${'ab'.repeat(32)}"}`);
      const options = JSON.stringify({ batch: 1, no_wait: true });
      thief.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, options, { reply });
      await thief.flush();
    }
    await api.request(kmsMac, { sha256_hex: 'cd'.repeat(32) }, startCall(2000));
    assert.equal(handled, 1, 'only the honest request was handled');
    assert.deepEqual(await streams(), before);
  });
});

test('of a consumer that is not there the reader is told how to make it', async () => {
  // Without a webhook its consumer is not made.
  await using bus = await startRealBus({ auditWebhook: false });
  const sink = await bus.as('audit-sink');
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const done = sink.consume(
    auditWebhookConsumer,
    {
      ...{ pull: () => PULL, confirm: true, handle: async () => [] },
      onFailure: ({ message }) => resolve(message),
    },
    stop.signal,
  );
  assert.match(await promise, /^AUDIT webhook cannot be read: 503; .*scripts\/provision\.ts streams/u);
  stop.abort();
  await done;
});
