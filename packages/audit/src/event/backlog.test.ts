import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { tellingWatch } from '../../test/support.ts';
import { createBacklog } from './backlog.ts';
import type { Batch } from './batcher.ts';

const event = (n: number) => Buffer.from(`{"n":${n}}`);

function countOf(told: ReturnType<typeof tellingWatch>['told']): number {
  return told
    .filter(({ what }) => what === 'dropped')
    .reduce((sum, { fields }) => sum + (fields as { count: number }).count, 0);
}

test('records are tried until they are stored, a later try under the same message id', async () => {
  const tries: { msgId: string; isRetry: boolean }[] = [];
  const publishBatch = async ({ msgId }: Batch, options = { isRetry: false }) => {
    tries.push({ msgId, ...options });
    if (tries.length < 3) throw new Error('not stored');
  };
  const { watch, told } = tellingWatch();
  const backlog = createBacklog({ auditor: { publishBatch }, watch });
  backlog.add(event(1));
  await waitFor('the third try', () => tries.length === 3);
  assert.deepEqual(
    tries.map(({ isRetry }) => isRetry),
    [false, true, true],
  );
  assert.equal(new Set(tries.map(({ msgId }) => msgId)).size, 1);
  await backlog[Symbol.asyncDispose]();
  assert.equal(countOf(told), 0);
});

test('what was sent before goes alone, under the id it was sent with', async () => {
  const sent: { msgId: string; count: number; isRetry: boolean }[] = [];
  const publishBatch = async ({ msgId, count }: Batch, options = { isRetry: false }) => {
    sent.push({ msgId, count, ...options });
  };
  const { watch } = tellingWatch();
  const backlog = createBacklog({ auditor: { publishBatch }, watch });
  for (const id of ['a', 'b', 'c']) backlog.add(event(1), id);
  await backlog[Symbol.asyncDispose]();
  assert.deepEqual(
    sent,
    ['a', 'b', 'c'].map((msgId) => ({ msgId, count: 1, isRetry: true })),
  );
});

test('what has no room is given up and counted, and so is what is left at the end', async () => {
  const publishBatch = async () => {
    throw new Error('not stored');
  };
  const { watch, told } = tellingWatch();
  const backlog = createBacklog({ auditor: { publishBatch }, watch, maxRecords: 5, flushMs: 50 });
  for (let n = 0; n < 8; n += 1) backlog.add(event(n));
  assert.equal(countOf(told), 3);
  await backlog[Symbol.asyncDispose]();
  backlog.add(event(9));
  await waitFor('all to be counted', () => countOf(told) === 9);
});
