import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remainingMs, startCall } from '@colonnade/contracts';
import { answerEach } from './batch.ts';

test('a batch stops when its caller no longer waits', async () => {
  let worked = 0;
  const call = startCall(200);
  const untilLate = () => {
    worked += 1;
    while (remainingMs(call) > 0);
  };
  await assert.rejects(answerEach(Array(100).fill(0), call, untilLate), { code: 'expired' });
  assert.equal(worked, 1);
});
