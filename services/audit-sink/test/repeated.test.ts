import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { verifyLog } from '@colonnade/audit-log';
import { AUDIT_STREAM, auditSubject, encode, startCall, zAuditEvent } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, readIds } from './support.ts';

/** A publisher whose acknowledgement was lost sends the same message again, under the same id. */
describe('a record that is sent again after a restart of NATS', () => {
  let sink: PreparedSink;
  before(async () => {
    sink = await prepareSink();
  });
  after(() => sink[Symbol.asyncDispose]());

  const send = (id: string, msgId: string) =>
    sink.publisher.publishDurable(
      {
        subject: auditSubject('pillar-api'),
        msgId,
        payload: encode(zAuditEvent, eventOf(id)),
        allowDuplicate: true,
      },
      startCall(5000),
    );
  const sendUntilStored = (id: string, msgId: string) =>
    waitFor(`${id} to be stored`, () => send(id, msgId).catch(() => undefined), { limitMs: 20_000 });
  const restart = async () => {
    await sink.bus.nats.kill('SIGKILL');
    await sink.bus.nats.restart();
  };
  const held = async () => {
    const witness = await sink.bus.witness();
    const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
    await witness.close();
    return info.json<{ state: { messages: number } }>().state.messages;
  };

  test('is told by the stream while it still holds the first one', async () => {
    const msgId = randomUUID();
    await send('held', msgId);
    await restart();
    const again = await sendUntilStored('held', msgId);
    assert.equal(again.duplicate, true);
    assert.equal(await held(), 1);
  });

  test('is told by the sink when the first one has left the stream for the file', async () => {
    const { logPath } = sink;
    await using _running = await sink.start();
    const msgId = randomUUID();
    await send('taken', msgId);
    await waitFor('it in the file', async () => (await readIds(logPath)).includes('taken'));
    await waitFor('an empty stream', async () => (await held()) === 0);
    await restart();
    const again = await sendUntilStored('taken', msgId);
    assert.equal(again.duplicate, false, 'the stream knows its id still: this test shows nothing');
    await sendUntilStored('after', randomUUID());
    await waitFor('the next', async () => (await readIds(logPath)).includes('after'), { limitMs: 20_000 });
    assert.deepEqual(await readIds(logPath), ['held', 'taken', 'after']);
    assert.equal((await verifyLog(logPath, await sink.anchors())).fault, undefined);
  });
});
