import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Bus, connectInspector, createUserNkey } from '@colonnade/bus';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

let bus: RealBus;
let api: Bus;

before(async () => {
  bus = await startRealBus();
  api = await bus.as('pillar-api');
});
after(() => bus[Symbol.asyncDispose]());

const answers = () =>
  api.ping().then(
    () => true,
    () => false,
  );

test('a server that hangs behind an open connection does not answer a ping', async () => {
  await api.ping();
  await bus.nats.kill('SIGSTOP');
  try {
    await waitFor('it to stand still', async () => !(await answers()));
    const late = { code: 'bus_unavailable', message: /does not answer within/u };
    await Promise.all([assert.rejects(api.ping(), late), assert.rejects(api.ping(), late)]);
    assert.ok(api.isConnected(), 'the connection is believed to be open');
  } finally {
    await bus.nats.kill('SIGCONT');
  }
  await waitFor('an answer', answers);
});

test('who connects is told a server that hangs from one that refuses, and from none', async () => {
  const logger = { info: () => {}, warn: () => {}, error: () => {} };
  const seedOf = { right: bus.nkeySeedOf('operator'), wrong: createUserNkey().seed };
  const connect = (which: keyof typeof seedOf, servers = bus.nats.url) =>
    connectInspector({ servers, nkeySeed: seedOf[which], name: 'test', logger });
  await assert.rejects(connect('wrong'), { message: /does not accept user operator: / });
  await assert.rejects(connect('right', 'nats://127.0.0.1:9'), { message: /cannot be reached: / });
  await bus.nats.kill('SIGSTOP');
  try {
    await waitFor('it to stand still', async () => !(await answers()));
    await assert.rejects(connect('right'), { message: /does not answer within 5000 ms$/ });
  } finally {
    await bus.nats.kill('SIGCONT');
  }
  await waitFor('an answer', answers);
});

test('a server that is gone does not answer, and one that came back does', async () => {
  await bus.nats.kill('SIGKILL');
  await waitFor('the loss of the connection', () => !api.isConnected());
  await assert.rejects(api.ping(), { code: 'bus_unavailable', message: 'the bus is not connected' });
  await bus.nats.restart();
  await waitFor('an answer', answers);
});
