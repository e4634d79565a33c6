import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain, type ValueObject } from '@colonnade/value';
import { generationFields } from './get.ts';

const shown = (names_left_out: number) =>
  generationFields(
    fromPlain({
      ...{ id: '2026-01-31T12:00:00.000Z', updated_count: 2 + names_left_out, names_left_out },
      ...{ updated: [{ master: 'east', minion_id: 'web-1' }], failed: [] },
    }) as ValueObject,
  );

test('names that are left out are told of, and nothing is said of none', () => {
  assert.deepEqual(shown(9000).at(-1), ['not shown', '9000 more, which the counts have']);
  assert.ok(!shown(0).some(([name]) => name.includes('not shown') || name === 'names_left_out'));
});
