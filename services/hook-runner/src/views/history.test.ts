import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode, LIMITS, zGenerationDetail } from '@colonnade/contracts';
import type { GenerationRecord } from '../store/generation-store.ts';
import { viewGenerationDetail } from './history.ts';

const ID = '2026-01-31T12:00:00.000Z';
const viewOf = (updated: readonly string[], failed: GenerationRecord['failed']) => {
  const record: GenerationRecord = {
    ...{ id: ID, endedAt: ID, status: 'failed', updated, failed },
    reason: 'some minions keep their old policies',
  };
  return viewGenerationDetail({ id: ID }, { find: () => record });
};
const names = (count: number, id = 'web') => Array.from({ length: count }, (_, i) => `east/${id}-${i}`);

test('of a generation with few minions all names are shown, and none is left out', () => {
  const view = viewOf(names(3), [{ minion: 'east/db-1', reason: 'too_large: x' }]);
  assert.deepEqual([view.updated.length, view.failed.length, view.names_left_out], [3, 1, 0]);
});

test('of one with more than are shown the view says how many are left out; the counts are of all', () => {
  const failed = names(LIMITS.generationMinions + 1, 'db').map((minion) => ({ minion, reason: 'no' }));
  const view = viewOf(names(10_000), failed);
  const most = LIMITS.generationMinions;
  assert.deepEqual([view.updated.length, view.failed.length], [most, most]);
  assert.deepEqual([view.updated_count, view.failed_count], [10_000, most + 1]);
  assert.equal(view.names_left_out, 10_000 - most + 1);
});

test('the longest names and reasons there can be fit one message', () => {
  const long = 'x'.repeat(LIMITS.idBytes - 6);
  const failed = names(10_000, long).map((minion) => ({ minion, reason: 'é'.repeat(2000) }));
  const view = viewOf(names(10_000, long), failed);
  assert.ok(encode(zGenerationDetail, view).length < LIMITS.natsPayloadBytes);
  assert.ok(view.failed.length > 0 && view.failed.length < LIMITS.generationMinions);
  assert.equal(view.names_left_out, 20_000 - view.updated.length - view.failed.length);
});
