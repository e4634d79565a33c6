import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VersionMark } from '@colonnade/estate-store';
import { planScope, tickAt } from './scope-plan.ts';

type Draft = Partial<VersionMark> & Pick<VersionMark, 'op' | 'tick'>;
const history = (pid: string, ...versions: Draft[]): VersionMark[] =>
  versions.map((version) => ({
    ...{
      pid,
      name: pid,
      tgtType: 'root',
      tgtId: 'root',
      pillarenv: 'base',
      isSecret: false,
      purged: false,
      updatedAtMs: version.tick * 1000,
    },
    ...version,
  }));

const planOf = (tick: number, ...marks: VersionMark[][]) => {
  const plan = planScope('base', tick, marks.flat());
  return {
    create: plan.create.map(({ past, now }) => [past.pid, past.tick, now.tick]),
    update: plan.update.map(({ past, now }) => [past.pid, past.tick, now.tick]),
    delete: plan.delete.map(({ pid, tick: was }) => [pid, was]),
    unchanged: plan.unchanged,
    conflicts: plan.conflicts.map(({ pid, reason }) => [pid, reason]),
  };
};

const nothing = { create: [], update: [], delete: [], unchanged: 0, conflicts: [] };

test('what was deleted, changed and made since comes back, goes back and goes', () => {
  const marks = [
    history('deleted', { op: 'create', tick: 1 }, { op: 'delete', tick: 7 }),
    history('changed', { op: 'create', tick: 2 }, { op: 'update', tick: 4 }, { op: 'update', tick: 8 }),
    history('made', { op: 'create', tick: 6 }),
    history('same', { op: 'create', tick: 3 }),
    history('between', { op: 'create', tick: 6 }, { op: 'delete', tick: 9 }),
    history('before', { op: 'create', tick: 1 }, { op: 'delete', tick: 2 }),
    history('again', { op: 'create', tick: 1 }, { op: 'delete', tick: 3 }, { op: 'restore', tick: 9 }),
  ];
  assert.deepEqual(planOf(5, ...marks), {
    create: [['deleted', 1, 7]],
    update: [['changed', 4, 8]],
    delete: [
      ['made', 6],
      ['again', 9],
    ],
    unchanged: 1,
    conflicts: [],
  });
  assert.deepEqual(planOf(9, ...marks), { ...nothing, unchanged: 4 });
  assert.equal(planOf(0, ...marks).delete.length, 4);
});

test('what cannot be brought back is named, with the reason', () => {
  const elsewhere = { pillarenv: 'minion_id:a;master:m1' };
  const plan = planOf(
    5,
    history('went', { op: 'create', tick: 1 }, { op: 'move', tick: 6, ...elsewhere }),
    history('came', { op: 'create', tick: 1, ...elsewhere }, { op: 'move', tick: 6 }),
    history(
      'passed',
      { op: 'create', tick: 1, ...elsewhere },
      { op: 'move', tick: 6 },
      { op: 'move', tick: 7, ...elsewhere },
    ),
    history('came-new', { op: 'create', tick: 6, ...elsewhere }, { op: 'move', tick: 7 }),
    history('purged', { op: 'create', tick: 1, purged: true }, { op: 'update', tick: 6 }),
    history('sealed', { op: 'create', tick: 1 }, { op: 'update', tick: 6, isSecret: true }),
    history('trimmed', { op: 'update', tick: 6 }, { op: 'update', tick: 7 }),
    history('trimmed-and-gone', { op: 'restore', tick: 6 }, { op: 'delete', tick: 7 }),
    history('renamed', { op: 'create', tick: 1 }, { op: 'move', tick: 6, name: 'other' }),
  );
  assert.deepEqual(plan.conflicts, [
    ['went', 'moved'],
    ['came', 'moved'],
    ['purged', 'purged'],
    ['sealed', 'secrecy'],
    ['trimmed', 'trimmed'],
    ['trimmed-and-gone', 'trimmed'],
  ]);
  assert.deepEqual([plan.update, plan.delete], [[['renamed', 1, 6]], [['came-new', 7]]]);
});

test('a time is the last clock that shows it; neither the future nor a forgotten past can be had', () => {
  const marks = history('p', { op: 'create', tick: 2 }, { op: 'update', tick: 5 }, { op: 'update', tick: 9 });
  const at = (asked: Parameters<typeof tickAt>[0], floor = { tick: 0, atMs: 0 }) =>
    tickAt(asked, { marks, now: 20, nowMs: 20_000, floor });
  assert.deepEqual(
    [1999, 2000, 4999, 5000, 9000, 20_000].map((timeMs) => at({ timeMs })),
    [1, 4, 4, 8, 20, 20],
  );
  assert.equal(at({ tick: 7 }), 7);
  const refused = (
    asked: Parameters<typeof tickAt>[0],
    code: string,
    floor?: { tick: number; atMs: number },
  ) => assert.throws(() => at(asked, floor), { code });
  refused({ tick: 21 }, 'unprocessable');
  refused({ timeMs: 20_001 }, 'unprocessable');
  const floor = { tick: 6, atMs: 6000 };
  refused({ tick: 5 }, 'conflict', floor);
  refused({ timeMs: 5999 }, 'conflict', floor);
  assert.deepEqual([at({ tick: 6 }, floor), at({ timeMs: 6000 }, floor)], [6, 8]);
});
