import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, startCall } from '@colonnade/contracts';
import { createRecordQueue, type QueueWatcher } from './record-queue.ts';

function watch(): QueueWatcher & { pending: number; lost: number; unstorable: string[] } {
  const seen = {
    pending: 0,
    lost: 0,
    unstorable: [] as string[],
    recordsPending: (count: number) => {
      seen.pending = count;
    },
    recordsLost: (count: number) => {
      seen.lost += count;
    },
    recordUnstorable: (error: ColonnadeError) => void seen.unstorable.push(error.code),
  };
  return seen;
}

/** A stream that stores nothing until its gate is open. */
function gatedStream() {
  const gate = Promise.withResolvers<void>();
  const stored: number[] = [];
  const publish = (id: number) => async () => {
    await gate.promise;
    stored.push(id);
  };
  return { publish, stored, open: gate.resolve };
}

test('takes records without waiting for the stream, up to its limit', async () => {
  const seen = watch();
  const queue = createRecordQueue(5, seen);
  const stream = gatedStream();
  // 32 are being published, 5 wait.
  for (let id = 0; id < 37; id += 1) await queue.add(stream.publish(id), startCall(1000));
  assert.equal(seen.pending, 37);
  await assert.rejects(queue.add(stream.publish(99), startCall(30)), { code: 'overloaded' });
  const late = queue.add(stream.publish(37), startCall(5000));
  stream.open();
  await late;
  await queue[Symbol.asyncDispose]();
  assert.deepEqual(
    stream.stored.toSorted((a, b) => a - b),
    Array.from({ length: 38 }, (_, id) => id),
  );
  assert.deepEqual([seen.pending, seen.lost], [0, 0]);
});

test('one that gave up waiting takes nobody else’s place', async () => {
  const queue = createRecordQueue(1, watch());
  const stream = gatedStream();
  for (let id = 0; id < 33; id += 1) await queue.add(stream.publish(id), startCall(1000));
  const results = Promise.allSettled(
    [20, 20, 20, 5000].map((ms, i) => queue.add(stream.publish(100 + i), startCall(ms))),
  );
  await assert.rejects(queue.add(stream.publish(200), startCall(60)), { code: 'overloaded' });
  stream.open();
  assert.deepEqual(
    (await results).map((r) => r.status),
    ['rejected', 'rejected', 'rejected', 'fulfilled'],
  );
  await queue[Symbol.asyncDispose]();
  assert.equal(stream.stored.length, 34);
});

test('says how many it has to give up', async () => {
  const seen = watch();
  const queue = createRecordQueue(100, seen, 50);
  const stream = gatedStream();
  for (let id = 0; id < 40; id += 1) await queue.add(stream.publish(id), startCall(100));
  await queue[Symbol.asyncDispose]();
  assert.equal(seen.lost, 40);
  stream.open();
});

test('a record that no try will store is told, and holds up no other', async () => {
  const seen = watch();
  const queue = createRecordQueue(5, seen);
  const stream = gatedStream();
  stream.open();
  await queue.add(async () => Promise.reject(new ColonnadeError('value_invalid', 'x')), startCall(100));
  await queue.add(async () => Promise.reject(new TypeError('not ours')), startCall(100));
  await queue.add(stream.publish(1), startCall(100));
  await queue[Symbol.asyncDispose]();
  assert.deepEqual(seen.unstorable.toSorted(), ['internal', 'value_invalid']);
  assert.deepEqual(stream.stored, [1]);
  assert.deepEqual([seen.pending, seen.lost], [0, 0]);
});
