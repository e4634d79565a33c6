import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runsOf } from './gap-recorder.ts';
import { backlogRatio, nextSkip, skipTarget } from './retention.ts';

const state = (waiting: number, firstSeq: number, lastSeq: number, bytes: number) => ({
  ackedSeq: 0,
  waiting,
  stream: { created: '', firstSeq, lastSeq, messages: lastSeq - firstSeq + 1, bytes, maxBytes: 1000 },
});
const limits = { maxEvents: 100, maxShare: 0.5 };

test('the backlog counts in events', () => {
  assert.equal(backlogRatio(state(50, 1, 1000, 0), 0, limits), 0.5);
  assert.equal(backlogRatio(state(0, 1, 1, 0), 0, limits), 0);
});

test('and in bytes, where the webhook alone holds them', () => {
  assert.equal(backlogRatio(state(10, 1, 10, 500), 0, limits), 1);
  assert.equal(backlogRatio(state(10, 1, 10, 250), 0, limits), 0.5);
  // The file is as far behind: nothing would become free.
  assert.equal(backlogRatio(state(10, 1, 10, 900), 10, limits), 0.1);
});

test('what one replica holds of old makes a backlog no smaller', () => {
  const { stream, ...rest } = state(10, 1, 1_000_000, 500);
  assert.equal(backlogRatio({ ...rest, stream: { ...stream, messages: 10 } }, 0, limits), 1);
});

test('it skips to half of the limit, or to half of what waits', () => {
  assert.equal(skipTarget(state(150, 1, 1000, 0), limits), 950);
  assert.equal(skipTarget(state(40, 1, 1000, 0), limits), 980);
});

test('gap records, and what another replica holds, do not push the limit on', () => {
  // What was skipped stays unacknowledged, and each gap record is one more in the stream.
  const targets: number[] = [];
  for (let second = 0; second < 100; second += 1) {
    const target = nextSkip(targets.at(-1) ?? 0, state(150 + second, 1, 1000 + second, 0), limits);
    if (target !== undefined) targets.push(target);
  }
  assert.deepEqual(targets.slice(0, 3), [950, 960, 970]);
  assert.equal(targets.length, 10);
  // A stream that was made anew begins with small numbers.
  assert.equal(nextSkip(950, state(150, 1, 200, 0), limits), 150);
});

test('a gap record is about sequences without a hole', () => {
  assert.deepEqual(runsOf([]), []);
  const messages = [4, 5, 6, 9, 11, 12].map((seq) => ({ seq, count: seq === 5 ? 10 : 1 }));
  assert.deepEqual(runsOf(messages), [
    { from: 4, to: 6, count: 12 },
    { from: 9, to: 9, count: 1 },
    { from: 11, to: 12, count: 2 },
  ]);
});
