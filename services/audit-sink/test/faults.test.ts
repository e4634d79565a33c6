import { after, before, describe, test } from 'node:test';
import { type FlowSink, startFlow, startFlowSink } from './flow.ts';

describe('while records flow', () => {
  let sink: FlowSink;
  before(async () => {
    sink = await startFlowSink();
  });
  after(() => sink?.[Symbol.asyncDispose]());

  test('kill -9 of the sink, twenty times', { timeout: 280_000 }, async () => {
    await using flow = startFlow(sink, 'kill');
    for (let i = 0; i < 20; i += 1) {
      await flow.more(100);
      await sink.service.kill('SIGKILL');
      await sink.service.restart();
    }
    await sink.expectAll(await flow.stop());
  });

  test('nats-server is killed and started anew', async () => {
    await using flow = startFlow(sink, 'nats');
    for (let i = 0; i < 3; i += 1) {
      await flow.more(100);
      await sink.bus.nats.kill('SIGKILL');
      await sink.bus.nats.restart();
    }
    await flow.more(100);
    await sink.expectAll(await flow.stop());
  });
});
