import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScopeHistory, VersionMark } from '@colonnade/estate-store';
import { openPast } from './past.ts';

type Draft = Partial<VersionMark> & Pick<VersionMark, 'op' | 'tick'>;
const marksOf = (pid: string, ...versions: Draft[]): VersionMark[] =>
  versions.map((version) => ({
    ...{ pid, name: pid, tgtType: 'root', tgtId: 'root', pillarenv: 'base', isSecret: false, purged: false },
    ...{ updatedAtMs: version.tick * 1000, ...version },
  }));

const FLOOR = { tick: 2, atMs: 2000 };
function storeOf(scopes: Record<string, VersionMark[] | undefined>, lives: string[] = []) {
  const asked: { scope: string; limit: number }[] = [];
  const readScopeHistory = async (scope: string, { limit }: { limit: number }): Promise<ScopeHistory> => {
    asked.push({ scope, limit });
    const clock = { incarnation: lives[asked.length - 1] ?? 'one', tick: 9 };
    return { clock, historyFloor: FLOOR, marks: scopes[scope] };
  };
  return { asked, readScopeHistory };
}
const pidsOf = (marks: readonly VersionMark[]) => marks.map(({ pid, tick }) => [pid, tick]);

test('scopes are told of one clock, whichever scope was changed first after a time', async () => {
  const away = { pillarenv: 'other' };
  const moved = marksOf('moved', { op: 'create', tick: 3 }, { op: 'move', tick: 6, ...away });
  const store = storeOf({
    base: [...moved, ...marksOf('gone', { op: 'create', tick: 3 }, { op: 'delete', tick: 5 })],
    other: [...moved, ...marksOf('late', { op: 'create', tick: 7, ...away })],
  });
  const told = async (at: number | string) => {
    const past = await openPast(store, at, ['base', 'other']);
    return [past.tick, pidsOf(await past.scope('base')), pidsOf(await past.scope('other'))];
  };
  const before = ['moved', 3];
  assert.deepEqual(await told(4), [4, [before, ['gone', 3]], []]);
  assert.deepEqual(await told('1970-01-01T00:00:05.999Z'), [5, [before], []]);
  assert.deepEqual(await told('1970-01-01T00:00:06.000Z'), [6, [], [['moved', 6]]]);
  assert.deepEqual((await told('1970-01-01T00:01:00.000Z'))[0], 9);
  assert.equal(store.asked.length, 8, 'each scope is read once');
  assert.deepEqual(
    store.asked.slice(0, 2).map(({ limit }) => limit),
    [20_000, 19_996],
  );
  await assert.rejects(told(1), { code: 'conflict', message: /since clock 2, 1970-01-01T00:00:02/u });
});

test('where first versions were removed the oldest clock is the first that is whole', async () => {
  const base = [
    ...marksOf('a', { op: 'update', tick: 4 }, { op: 'update', tick: 8 }),
    ...marksOf('b', { op: 'create', tick: 3 }),
  ];
  const store = storeOf({ base, also: marksOf('c', { op: 'update', tick: 7, pillarenv: 'also' }) });
  const gone = { code: 'conflict', message: /since clock 4,/u };
  await assert.rejects(openPast(store, 3, ['base']), gone);
  await assert.rejects(openPast(store, '1970-01-01T00:00:03.999Z', ['base']), gone);
  const past = await openPast(store, 4, ['base']);
  assert.deepEqual(pidsOf(await past.scope('base')), [
    ['a', 4],
    ['b', 3],
  ]);
  await assert.rejects(past.scope('also'), { code: 'conflict', message: /since clock 7,/u });
});

test('too many versions are refused, and a restore of the estate in between', async () => {
  await assert.rejects(openPast(storeOf({}), 4, ['base']), { code: 'unprocessable', field: 'at' });
  const store = storeOf({ base: [], other: [] }, ['one', 'two']);
  await assert.rejects(openPast(store, 4, ['base', 'other']), { code: 'unavailable' });
});
