import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createByteLru } from './byte-lru.ts';

test('what was used longest ago goes first; what is to be kept stays', () => {
  const lru = createByteLru<string, number>(30);
  for (const [i, key] of ['a', 'b', 'c', 'd'].entries()) lru.set(key, i, 10);
  lru.get('a');
  lru.evict(new Set(['b']));
  assert.deepEqual(['a', 'b', 'c', 'd'].filter(lru.has), ['a', 'b', 'd']);
  assert.equal(lru.bytes, 30);
});

test('bytes follow replacing, deleting and clearing', () => {
  const lru = createByteLru<string, number>(30);
  lru.set('a', 1, 10);
  lru.set('a', 2, 25);
  lru.delete('unknown');
  assert.equal(lru.bytes, 25);
  lru.delete('a');
  assert.deepEqual([lru.bytes, lru.size], [0, 0]);
  lru.set('a', 1, 10);
  lru.clear();
  assert.deepEqual([lru.bytes, lru.size], [0, 0]);
});
