import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EstateStore, Mutation, Page } from '../port.ts';
import * as h from './harness.ts';

/** Reads all pages; between two pages something is written. */
async function readPages<T>(
  read: (page: { after: string | undefined; limit: number }) => Promise<Page<T>>,
  between: (page: number) => Promise<unknown>,
): Promise<T[]> {
  const rows: T[] = [];
  let after: string | undefined;
  for (let page = 0; ; page++) {
    const { rows: found, next } = await read({ after, limit: 7 });
    rows.push(...found);
    if (next === undefined) return rows;
    assert.equal(found.length, 7, 'only the last page is short');
    after = next;
    await between(page);
  }
}

const number = (i: number) => String(i).padStart(3, '0');
const range = (length: number) => Array.from({ length }, (_, i) => i);

function assertEachOnce(seen: readonly string[], throughout: readonly string[]): void {
  assert.equal(new Set(seen).size, seen.length, 'nothing is seen twice');
  const all = new Set(seen);
  assert.deepEqual(
    throughout.filter((key) => !all.has(key)),
    [],
    'nothing is left out',
  );
}

export function testPaging(create: h.CreateHarness): void {
  test('pages of pillars stay whole while pillars are created, changed and deleted', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...range(60).map((i) => h.createPillar(`p${number(i)}`)));
      const between = (page: number) => {
        const fresh = range(3).map((i) => h.createPillar(`p${number(page * 9 + i * 20)}-${page}`));
        const changed = range(10).map((i) => h.updatePillar(`p${number(i * 6 + 1)}`, BigInt(page)));
        return h.writeTick(
          store,
          ...fresh,
          ...changed,
          h.deletePillar(`p${number(page * 6)}`),
          h.deletePillar(`p${number(60 - 6 * (page + 1))}`),
        );
      };
      const limited = (page: number) => (page < 5 ? between(page) : Promise.resolve());
      const rows = await readPages((page) => store.listPillars({ tgtTypes: ['root'] }, page), limited);
      const deleted = new Set(range(5).flatMap((page) => [page * 6, 60 - 6 * (page + 1)]));
      const throughout = range(60)
        .filter((i) => !deleted.has(i))
        .map((i) => `p${number(i)}`);
      assertEachOnce(
        rows.map(({ pid }) => pid),
        throughout,
      );
    });
  });

  test('pages of minions stay whole while minions come, go and change', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putCollection('c'), h.putMaster('m1'), h.putMaster('m2'));
      const minion = (i: number, collections: string[] = []) =>
        h.putMinion(`m${(i % 2) + 1}`, `w${number(i)}`, collections);
      await h.writeTick(store, ...range(40).map((i) => minion(i)));
      const between = (page: number) => {
        const gone = page * 4;
        const removal: Mutation = {
          kind: 'minion.delete',
          master: `m${(gone % 2) + 1}`,
          id: `w${number(gone)}`,
          expect: undefined,
        };
        return h.writeTick(
          store,
          minion(100 + page),
          { ...minion(39, page % 2 === 0 ? ['c'] : []), expect: undefined },
          removal,
        );
      };
      const limited = (page: number) => (page < 5 ? between(page) : Promise.resolve());
      const rows = await readPages((page) => store.listMinions({}, page), limited);
      const deleted = new Set(range(5).map((page) => page * 4));
      const throughout = range(40)
        .filter((i) => !deleted.has(i))
        .map((i) => `w${number(i)}`);
      assertEachOnce(
        rows.map(({ id }) => id),
        throughout,
      );
    });
  });

  test('a page past the end is empty, and a full last page has no next', async () => {
    await h.withStore(create, async (store: EstateStore) => {
      await h.writeTick(store, h.createPillar('p1'), h.createPillar('p2'));
      const filter = { tgtTypes: ['root'] } as const;
      assert.deepEqual(await store.listPillars(filter, { after: 'p2', limit: 2 }), {
        rows: [],
        next: undefined,
      });
      assert.equal((await store.listPillars(filter, { after: undefined, limit: 2 })).next, undefined);
      assert.equal((await store.listPillars(filter, { after: undefined, limit: 1 })).next, 'p1');
      assert.deepEqual(await store.listMinions({}, { after: 'z/z', limit: 2 }), {
        rows: [],
        next: undefined,
      });
    });
  });
}
