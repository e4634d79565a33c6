import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from './handle-entry.ts';
import { createStreamFaultRecorder } from './stream-faults.ts';

test('a flood is on record at once, then once a minute with its sum, for each master', () => {
  const records: Refusal[] = [];
  let nowMs = 0;
  const record = createStreamFaultRecorder(
    async (refusal) => void records.push(refusal),
    () => assert.fail(),
    () => nowMs,
  );
  for (nowMs = 0; nowMs <= 60_000; nowMs += 500) record({ master: 'm1', kind: 'too_long', dropped: 10 });
  record({ master: 'm2', kind: 'exhausted', dropped: 1 });
  assert.deepEqual(
    records.map(({ master, reason }) => [master, Number(/\d+$/u.exec(reason)?.[0])]),
    [
      ['m1', 10],
      ['m1', 1200],
      ['m2', 1],
    ],
  );
});
