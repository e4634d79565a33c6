import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeAuditMessage, encode, zAuditEvent } from '@colonnade/contracts';
import fc from 'fast-check';
import { type Batch, createBatcher } from './batcher.ts';

function eventOf(auditID: string): Uint8Array {
  return encode(zAuditEvent, {
    ...{
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      stage: 'ResponseComplete',
      auditID,
    },
    ...{ requestURI: '/', verb: 'get', user: {}, requestReceivedTimestamp: 'r', stageTimestamp: 's' },
  });
}

/** Batches that end when the test says so. */
function holding() {
  const sent: { batch: Batch; done: PromiseWithResolvers<void> }[] = [];
  const send = (batch: Batch) => {
    const done = Promise.withResolvers<void>();
    sent.push({ batch, done });
    return done.promise;
  };
  const idsOf = (index: number) =>
    decodeAuditMessage(sent[index]?.batch.payload ?? Buffer.of()).map((e) => e.auditID);
  return { sent, send, idsOf };
}

describe('records sent together', () => {
  test('the first leaves at once and alone, what comes meanwhile leaves together', async () => {
    const { sent, send, idsOf } = holding();
    const batcher = createBatcher({ send, maxInFlight: 1 });
    const all = ['a', 'b', 'c', 'd'].map((id) => batcher.add(eventOf(id)));
    assert.deepEqual([sent.length, idsOf(0)], [1, ['a']]);
    sent[0]?.done.resolve();
    await all[0];
    assert.deepEqual([sent.length, idsOf(1)], [2, ['b', 'c', 'd']]);
    sent[1]?.done.resolve();
    await Promise.all(all);
    assert.notEqual(sent[0]?.batch.msgId, sent[1]?.batch.msgId);
  });

  test('where nobody waits, the first waits for others, until they are enough or the time is over', async () => {
    const { sent, send, idsOf } = holding();
    const batcher = createBatcher({ send, lingerMs: 60_000, enough: 3 });
    const enough = ['a', 'b', 'c'].map((id) => batcher.add(eventOf(id)));
    assert.deepEqual([sent.length, idsOf(0)], [1, ['a', 'b', 'c']]);
    sent[0]?.done.resolve();
    await Promise.all(enough);
    const short = createBatcher({ send, lingerMs: 1, enough: 3 });
    const late = ['d', 'e'].map((id) => short.add(eventOf(id)));
    assert.equal(sent.length, 1);
    while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.deepEqual(idsOf(1), ['d', 'e']);
    sent[1]?.done.resolve();
    await Promise.all(late);
  });

  test('a batch that fails fails for those in it, and for nobody else', async () => {
    const { sent, send } = holding();
    const batcher = createBatcher({ send, maxInFlight: 1 });
    const results = Promise.allSettled(['a', 'b', 'c'].map((id) => batcher.add(eventOf(id))));
    sent[0]?.done.resolve();
    while (sent.length < 2) await Promise.resolve();
    sent[1]?.done.reject(new Error('not stored'));
    assert.deepEqual(
      (await results).map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    );
  });

  test('every record is in one batch, in its order, and no batch is over its bounds', async () => {
    const bounds = fc.record({
      count: fc.integer({ min: 1, max: 60 }),
      maxRecords: fc.integer({ min: 1, max: 9 }),
      maxBytes: fc.integer({ min: 300, max: 3000 }),
      maxInFlight: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(bounds, async ({ count, ...options }) => {
        const batches: Batch[] = [];
        const send = async (batch: Batch) => void batches.push(batch);
        const batcher = createBatcher({ send, ...options });
        const ids = Array.from({ length: count }, (_, i) => String(i));
        await Promise.all(ids.map((id) => batcher.add(eventOf(id))));
        const lists = batches.map(({ payload }) => decodeAuditMessage(payload));
        assert.deepEqual(
          lists.flat().map(({ auditID }) => auditID),
          ids,
        );
        for (const [i, { payload, count: told }] of batches.entries()) {
          assert.equal(lists[i]?.length, told);
          assert.ok(told <= options.maxRecords && (told === 1 || payload.length <= options.maxBytes));
        }
      }),
    );
  });
});
