import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBacklog } from './backlog.ts';

test('the oldest age of the last seconds counts, and is forgotten after that', () => {
  let nowMs = 0;
  const backlog = createBacklog(() => nowMs);
  assert.equal(backlog.oldestMs(), 0);
  backlog.noteAge(1500);
  backlog.noteAge(20);
  assert.equal(backlog.oldestMs(), 1500);
  nowMs = 5100;
  backlog.noteAge(10);
  assert.equal(backlog.oldestMs(), 1500);
  nowMs = 10_300;
  assert.equal(backlog.oldestMs(), 10);
  nowMs = 30_000;
  assert.equal(backlog.oldestMs(), 0);
});
