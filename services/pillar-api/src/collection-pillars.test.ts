import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EstateStore, PillarRecord } from '@colonnade/estate-store';
import { nameCollectionPillars } from './collection-pillars.ts';

/** A collection of so many pillars, read page by page as the store does. */
function storeOf(count: number): Pick<EstateStore, 'listPillars'> {
  const all = Array.from({ length: count }, (_, i) => ({
    pid: String(i).padStart(5, '0'),
    name: `n${i}`,
    isSecret: i % 2 === 1,
    value: 'never named',
  })) as unknown as PillarRecord[];
  return {
    async listPillars(filter, { after, limit }) {
      assert.deepEqual(filter, { tgtTypes: ['collection'], tgtId: 'c1' });
      const rows = all.filter(({ pid }) => pid > (after ?? '')).slice(0, limit);
      const last = rows.at(-1)?.pid;
      return { rows, next: last === all.at(-1)?.pid ? undefined : last };
    },
  };
}

for (const [count, named, more] of [
  [0, 0, false],
  [1, 1, false],
  [50, 50, false],
  [51, 51, false],
  [500, 500, false],
  [501, 500, true],
] as const) {
  test(`of ${count} pillars ${named} are named, without their values`, async () => {
    const { pillars, pillars_more } = await nameCollectionPillars(storeOf(count), 'c1');
    assert.deepEqual([pillars.length, pillars_more], [named, more]);
    assert.equal(new Set(pillars.map(({ pid }) => pid)).size, named);
    if (count > 0) assert.deepEqual(pillars[0], { pid: '00000', name: 'n0', is_secret: false });
  });
}
