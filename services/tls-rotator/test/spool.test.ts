import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { auditSubject, eventSubject } from '@colonnade/contracts';
import { createSecret } from '@colonnade/service-kit';
import { startRealBus } from '../../../test/support/real-bus.ts';
import { skipWithout } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { connectLate } from '../src/record/late-bus.ts';
import { openSpool, type SpoolItem } from '../src/record/spool.ts';

const item = (number: number): SpoolItem => ({
  subject: 'x',
  msgId: `id-${number}`,
  payload: Buffer.from(String(number)),
});
const watcher = () => {
  const seen = { pending: 0, lost: 0, failures: 0 };
  return {
    seen,
    pending(count: number) {
      seen.pending = count;
    },
    lost(count: number) {
      seen.lost += count;
    },
    publishFailed() {
      seen.failures += 1;
    },
  };
};

test('what is put stays on disk until it is published, in order, also over a restart', async () => {
  await using dir = await tempDir('spool');
  const folder = path.join(dir.path, 'spool');
  const first = watcher();
  {
    await using spool = await openSpool(folder, () => Promise.reject(new Error('away')), first);
    for (const number of [1, 2, 3]) await spool.put([item(number), item(number + 10)]);
    assert.equal((await readdir(folder)).length, 3);
    await waitFor('a try', () => first.seen.failures > 0);
  }
  assert.equal((await readdir(folder)).length, 3);
  await writeFile(path.join(folder, '1-abc.json.draft'), 'half');
  const published: string[] = [];
  const second = watcher();
  let tries = 0;
  await using spool = await openSpool(
    folder,
    async ({ payload }) => {
      tries += 1;
      if (tries === 2) throw new Error('once more');
      published.push(Buffer.from(payload).toString());
    },
    second,
  );
  await spool.put([item(4)]);
  await waitFor('everything', () => second.seen.pending === 0);
  // The batch in which one failed is sent again: the stream knows its ids.
  assert.deepEqual(published, ['1', '1', '11', '2', '12', '3', '13', '4']);
  assert.deepEqual(await readdir(folder), []);
  assert.equal(second.seen.lost, 0);
});

test('NATS may be away at the start: what was kept is stored once it is there', {
  skip: await skipWithout('nats'),
}, async () => {
  await using real = await startRealBus();
  await using dir = await tempDir('spool');
  const { port } = new URL(real.nats.url);
  await real.nats.kill('SIGKILL');
  const logger = { info: () => {}, warn: () => {}, error: () => {} } as never;
  await using bus = connectLate(
    {
      natsUrl: `nats://127.0.0.1:${port}`,
      natsNkeySeed: createSecret(real.nkeySeedOf('tls-rotator')),
      natsCaFile: undefined,
    },
    logger,
  );
  const watch = watcher();
  await using spool = await openSpool(path.join(dir.path, 'spool'), (one) => bus.publish(one), watch);
  const payload = Buffer.from('{}');
  await spool.put([
    { subject: auditSubject('tls-rotator'), msgId: 'record', payload },
    { subject: eventSubject('tls.node_rotated'), msgId: 'event', payload },
  ]);
  await waitFor('a failure', () => watch.seen.failures > 0);
  assert.equal(watch.seen.pending, 2);
  await real.nats.restart();
  await waitFor('both to be stored', () => watch.seen.pending === 0, { limitMs: 30_000 });
  const witness = await real.witness();
  for (const [stream, count] of [
    ['AUDIT', 1],
    ['EVENTS', 1],
  ] as const) {
    const { state } = (await witness.request(`$JS.API.STREAM.INFO.${stream}`)).json<{
      state: { messages: number };
    }>();
    assert.equal(state.messages, count, stream);
  }
});
