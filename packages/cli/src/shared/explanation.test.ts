import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain, type ValueObject } from '@colonnade/value';
import { explanationLines } from './explanation.ts';

const found = (more: object) =>
  fromPlain({
    ...{ minion_id: 'web-1', master: 'east', pillarenv: 'base', clock: 7, keys: [], scopes: [] },
    ...more,
  }) as ValueObject;

test('memberships by rule stand under the head, and only where there are any', () => {
  const head = 'web-1 of east, clock 7, pillarenv base';
  const none = '└─ (it gets no pillar)';
  assert.deepEqual(explanationLines(found({}), undefined), [head, none]);
  assert.deepEqual(explanationLines(found({ rule_collections: ['debian', 'edge'] }), undefined), [
    ...[head, 'a member by rule of debian, edge', none],
  ]);
});
