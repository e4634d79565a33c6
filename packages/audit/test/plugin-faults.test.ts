import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, decodeAuditMessage } from '@colonnade/contracts';
import type { FastifyInstance } from 'fastify';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  policyOf,
  type RealBus,
  readMessages,
  readRecords,
  removeStream,
  restoreStream,
  startApp,
  startRealBus,
  type TestApp,
} from './support.ts';

let bus: RealBus;
let api: Bus;
let handled = 0;
let exported: Readable | undefined;

before(async () => {
  bus = await startRealBus();
  api = await bus.as('pillar-api');
});
after(() => bus[Symbol.asyncDispose]());
beforeEach(() => {
  handled = 0;
});

function addRoutes(app: FastifyInstance): void {
  const handler = async (request: { headers: Record<string, unknown> }) => {
    handled += 1;
    if (request.headers['x-cut'] !== undefined) await removeStream(bus);
    return 'the answer';
  };
  app.post('/pillars', handler);
  app.get('/pillars/:pid', handler);
  app.post('/pillars/:pid/reveal', { config: { audit: { floor: true } } }, handler);
  app.get('/export', { config: { audit: { floor: true } } }, async (_, reply) => {
    await removeStream(bus);
    exported = Readable.from(['the estate']);
    return reply.send(exported);
  });
}

const started = async (options: Partial<Parameters<typeof startApp>[0]> = {}): Promise<TestApp> =>
  startApp({ bus: api, addRoutes, ...options });

const send = (app: TestApp, method: string, path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, app.url), { method, headers });

/** Without a stream while it runs, with a new and empty one afterwards. */
async function withoutStream(run: () => Promise<void>): Promise<void> {
  await removeStream(bus);
  try {
    await run();
  } finally {
    await restoreStream(bus);
  }
}

const stagesOf = async () =>
  (await readRecords(bus)).map(({ stage, responseStatus }) => [stage, responseStatus?.code]);

describe('while the stream takes no records', () => {
  test('a write is refused before its handler runs, and that is on record later', async () => {
    await using app = await started();
    await withoutStream(async () => {
      const answer = await send(app, 'POST', '/pillars', { 'audit-id': 'refused' });
      assert.equal(answer.status, 500);
      assert.equal(answer.headers.get('audit-id'), 'refused');
      assert.equal(((await answer.json()) as { code: string }).code, 'audit_unavailable');
      assert.equal(handled, 0);
    });
    const late = await waitFor('the record', async () => (await readRecords(bus))[0]);
    assert.deepEqual(
      [late.stage, late.responseStatus?.code, late.auditID],
      ['ResponseComplete', 500, 'refused'],
    );
    assert.equal(app.told.filter(({ what }) => what === 'rejected').length, 1);
  });

  test('blocking goes on, and stores what it could not', async () => {
    await using app = await started({ mode: 'blocking' });
    await withoutStream(async () => {
      assert.equal((await send(app, 'POST', '/pillars')).status, 200);
      assert.equal(handled, 1);
    });
    await waitFor('both records', async () => (await readRecords(bus)).length === 2);
    assert.deepEqual(
      (await stagesOf()).sort(),
      [
        ['RequestReceived', undefined],
        ['ResponseComplete', 200],
      ].sort(),
    );
  });

  test('reads go on unless told otherwise, and their records are sent together', async () => {
    await using app = await started();
    await withoutStream(async () => {
      for (let i = 0; i < 20; i += 1) assert.equal((await send(app, 'GET', '/pillars/1')).status, 200);
    });
    await waitFor('all records', async () => (await readRecords(bus)).length === 40);
    const messages = await readMessages(bus);
    assert.ok(messages.length < 10, `${messages.length} messages`);
    assert.ok(messages.some((message) => decodeAuditMessage(message).length > 1));
  });

  test('no setting and no policy lets a reveal go unrecorded', async () => {
    await using app = await started({ mode: 'batch', policy: policyOf('- level: None') });
    await withoutStream(async () => {
      assert.equal((await send(app, 'POST', '/pillars/1/reveal')).status, 500);
      assert.equal(handled, 0);
    });
  });
});

test('a reveal whose end cannot be recorded is withheld, and its end recorded later', async () => {
  await removeStream(bus);
  await restoreStream(bus);
  await using app = await started();
  const answer = await send(app, 'POST', '/pillars/1/reveal', { 'x-cut': '1' });
  assert.equal(answer.status, 500);
  assert.equal(handled, 1);
  assert.doesNotMatch(await answer.text(), /the answer"/u);
  await restoreStream(bus);
  const late = await waitFor('the record', async () => (await readRecords(bus))[0]);
  assert.deepEqual([late.stage, late.responseStatus?.code], ['ResponseComplete', 200]);
});

test('a stream whose record cannot be stored is withheld, and let go of', async () => {
  await removeStream(bus);
  await restoreStream(bus);
  await using app = await started();
  const answer = await send(app, 'GET', '/export');
  assert.equal(answer.status, 500);
  assert.doesNotMatch(await answer.text(), /estate"?$/u);
  assert.equal(exported?.destroyed, true);
  await restoreStream(bus);
});

test('a write whose end cannot be recorded is answered all the same, and its end recorded later', async () => {
  await removeStream(bus);
  await restoreStream(bus);
  await using app = await started();
  const answer = await send(app, 'POST', '/pillars', { 'x-cut': '1' });
  assert.deepEqual([answer.status, await answer.text()], [200, 'the answer']);
  await restoreStream(bus);
  await waitFor('the record', async () => (await readRecords(bus)).length === 1);
});

test('a policy of None still has a reveal at Metadata, with both stages', async () => {
  await removeStream(bus);
  await restoreStream(bus);
  const policy = policyOf('- level: None', '  omitStages: [RequestReceived, ResponseComplete]');
  await using app = await started({ policy });
  await send(app, 'POST', '/pillars/1/reveal');
  await send(app, 'POST', '/pillars');
  const records = await readRecords(bus);
  assert.deepEqual(
    records.map(({ stage, level, objectRef }) => [stage, level, objectRef?.subresource]),
    [
      ['RequestReceived', 'Metadata', 'reveal'],
      ['ResponseComplete', 'Metadata', 'reveal'],
    ],
  );
});

test('with NATS gone a write is refused at once, and with NATS back it is taken', async () => {
  await using own = await startRealBus();
  const lost = await own.as('pillar-api');
  await using app = await started({ bus: lost });
  assert.equal((await send(app, 'POST', '/pillars')).status, 200);
  await own.nats.kill('SIGKILL');
  await waitFor('the connection to be lost', () => !lost.isConnected());
  const startMs = performance.now();
  for (let i = 0; i < 5; i += 1) assert.equal((await send(app, 'POST', '/pillars')).status, 500);
  assert.ok(performance.now() - startMs < 2000, 'nobody waits for a bus that is away');
  await own.nats.restart();
  await waitFor('a write to be taken', async () => (await send(app, 'POST', '/pillars')).status === 200);
  const refused = async () =>
    (await readRecords(own)).filter((r) => r.responseStatus?.code === 500).length >= 5;
  await waitFor('the refusals on record', refused);
});

test('a record whose acknowledgement is lost is sent again, and is there once', async () => {
  let lost = 0;
  const deaf: Pick<Bus, 'publishDurable' | 'isConnected'> = {
    isConnected: () => true,
    async publishDurable(message, call) {
      const ack = await api.publishDurable(message, call);
      lost += 1;
      if (lost > 1) return ack;
      throw new ColonnadeError('bus_unavailable', 'the acknowledgement is lost');
    },
  };
  const before = (await readRecords(bus)).length;
  {
    await using app = await started({ bus: deaf, mode: 'blocking' });
    assert.equal((await send(app, 'POST', '/pillars')).status, 200);
    await waitFor('both records', async () => lost >= 3);
  }
  const stages = (await readRecords(bus)).slice(before).map(({ stage }) => stage);
  assert.deepEqual(stages.sort(), ['RequestReceived', 'ResponseComplete']);
});
