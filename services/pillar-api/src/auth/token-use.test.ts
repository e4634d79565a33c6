import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokenUse } from './token-use.ts';

test('a use is noted at most once a minute, also by another process, and a store that is away bothers nobody', async () => {
  const noted: [string, number][] = [];
  let isAway = false;
  const use = createTokenUse({
    noteTokenUse: async (id, atMs) => {
      noted.push([id, atMs]);
      if (isAway) throw new Error('away');
    },
  });
  const token = (id: string, lastUsedAtMs?: number) => ({ id, lastUsedAtMs });
  const t0 = 1_000_000;
  use(token('a'), t0);
  use(token('a'), t0 + 59_999);
  use(token('b', t0 - 10), t0);
  use(token('c', t0 - 60_000), t0);
  isAway = true;
  use(token('a', t0), t0 + 60_000);
  use(token('a', t0), t0 + 60_001);
  await Promise.resolve();
  assert.deepEqual(noted, [
    ['a', t0],
    ['c', t0],
    ['a', t0 + 60_000],
  ]);
});
