import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { encode, hooksHistory, LIMITS, zGenerationDetail } from '@colonnade/contracts';
import { tempDir } from '../../../../test/support/temp.ts';
import type { GenerationRecord } from '../store/generation-store.ts';
import { openRunStore } from '../store/run-store.ts';
import { viewGenerationDetail, viewRuns } from './history.ts';

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

test('runs of many hooks that wrote much come in pages that fit one message, each once', async () => {
  await using dir = await tempDir('history');
  using store = openRunStore(path.join(dir.path, 'hooks.sqlite'));
  const text = 'x'.repeat(1000);
  const nothing = { code: 0, signal: undefined, durationMs: 1, slow: false, droppedBytes: 0 };
  for (let i = 0; i < 60; i += 1) {
    const run = { id: `r${i}`, event: 'pillar-changed', subject: '/pillars/1' };
    const ledger = store.ledger(run);
    for (let k = 0; k < 20; k += 1) {
      const hook = `${k}-${'n'.repeat(240)}`;
      ledger.ended({
        ...nothing,
        hook,
        status: 'warning',
        reason: 'é'.repeat(2000),
        stdout: text,
        stderr: text,
      });
    }
    store.end(run, { status: 'warning', fault: undefined });
  }
  const seen: string[] = [];
  let pages = 0;
  for (let after: string | undefined; pages === 0 || after !== undefined; pages += 1) {
    const page = viewRuns({ limit: 500, ...(after === undefined ? {} : { after }) }, store);
    const bytes = encode(hooksHistory.response, page);
    assert.ok(bytes.length < LIMITS.natsPayloadBytes);
    assert.ok(!Buffer.from(bytes).includes(text), 'nothing of what they wrote');
    seen.push(...page.runs.map(({ run }) => run));
    after = page.next;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 60 }, (_, i) => `r${59 - i}`),
  );
  assert.ok(pages > 1);
});

test('generations are listed by how many minions they updated, not by their names', async () => {
  await using dir = await tempDir('history');
  using store = openRunStore(path.join(dir.path, 'hooks.sqlite'));
  const { generations } = store;
  const failed = [{ minion: 'east/db-1', reason: 'no' }];
  const record = {
    id: ID,
    endedAt: ID,
    status: 'failed',
    updated: names(3),
    failed,
    reason: 'some',
  } as const;
  generations.end(record, undefined, [], []);
  assert.deepEqual(
    generations.history(1).map((one) => ({ ...one })),
    [{ id: ID, endedAt: ID, status: 'failed', reason: 'some', updatedCount: 3, failedCount: 1 }],
  );
  assert.deepEqual(generations.find(ID), record);
});
