import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionRecord, PillarRecord } from '@colonnade/estate-store';
import fc from 'fast-check';
import { createCollectionTree } from './collection-tree.ts';
import type { EstateView } from './estate-view.ts';
import { type Merged, mergeScopes } from './merge.ts';
import { planMerge } from './plan.ts';

/** Few of each, so that scopes, names and ids meet often; some look like something else on purpose. */
const IDS = ['a', 'b', 'c', 'd', 'e', 'user', 'base', '__proto__'] as const;
const SUBS = ['ann', 'bob'] as const;
const NAMES = ['role', 'x', '', '__proto__', 'toString', '0', '💥', '{"$enc":1}'] as const;

const MASTER = 'm1';
const MINION = 'web-1';

const someEnv = fc.oneof(
  fc.constantFrom(
    'base',
    'prod',
    '',
    ' base',
    'BASE',
    'base;user:ann',
    'collection:',
    'collection:;user:ann',
  ),
  fc.constantFrom(...IDS).map((id) => `collection:${id}`),
  fc
    .tuple(fc.constantFrom(...IDS), fc.constantFrom(...SUBS))
    .map(([id, sub]) => `collection:${id};user:${sub}`),
  fc
    .tuple(fc.constantFrom(...IDS), fc.constantFrom(...SUBS))
    .map(([id, sub]) => `collection:${id};user:${sub};x`),
  fc.constantFrom(`minion_id:${MINION};master:${MASTER}`, `minion_id:other;master:${MASTER}`, 'task:t1'),
  fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => text.replaceAll(',', '')),
);

type Estate = { rows: PillarRecord[]; collections: CollectionRecord[] };

const someEstate: fc.Arbitrary<Estate> = fc.record({
  // The parent of each is one that came before it, or none: any forest, no cycle.
  collections: fc.array(fc.nat(), { maxLength: IDS.length }).map((picks) =>
    picks.map((pick, i) => ({
      id: IDS[i] as string,
      name: 'c',
      parentId: i === 0 || pick % 3 === 0 ? undefined : IDS[pick % i],
      owner: 'ann',
      tick: 1,
    })),
  ),
  rows: fc
    .uniqueArray(fc.tuple(someEnv, fc.constantFrom(...NAMES)), {
      maxLength: 60,
      selector: (pair) => pair.join('\n'),
    })
    .map((pairs) => pairs.map(([pillarenv, name], i) => pillar(`p${i}`, pillarenv, name))),
});

function pillar(pid: string, pillarenv: string, name: string): PillarRecord {
  const by = { createdBy: 't', updatedBy: 't', createdAtMs: 0, updatedAtMs: 0, tick: 1 };
  return { pid, tgtType: 'root', tgtId: 'root', pillarenv, name, value: pid, isSecret: false, ...by };
}

/** get_merged() of seed 000, read sentence by sentence; nothing of the service is used. */
function getMerged(estate: Estate, pillarenv: string): Map<string, string> {
  const mergeResult = new Map<string, string>();
  const update = (env: string) => {
    for (const row of estate.rows) if (row.pillarenv === env) mergeResult.set(row.name, row.pid);
  };
  const envs = pillarenv.split(',');
  for (const env of envs) {
    if (env.startsWith('collection:')) {
      const [collectionId = '', ...rest] = env.slice('collection:'.length).split(';');
      const userSub = rest[0]?.startsWith('user:') ? rest[0].slice('user:'.length) : undefined;
      const isParsed =
        collectionId !== '' &&
        !/[:,]/u.test(collectionId) &&
        rest.length <= 1 &&
        (rest.length === 0 || !!userSub);
      const branchIds = isParsed ? getAncestorsIds(estate, collectionId) : [];
      for (const id of branchIds) update(userSub ? `collection:${id};user:${userSub}` : `collection:${id}`);
    }
    update(env);
  }
  if (envs.includes('base')) update(`minion_id:${MINION};master:${MASTER}`);
  return mergeResult;
}

/** include_self=True, root first. */
function getAncestorsIds(estate: Estate, target: string): string[] {
  const self = estate.collections.find((c) => c.id === target);
  if (self === undefined) return [];
  return [...(self.parentId === undefined ? [] : getAncestorsIds(estate, self.parentId)), target];
}

function merge(estate: Estate, pillarenv: string): Merged {
  const view: EstateView = {
    task: () => undefined,
    master: () => ({ id: MASTER, envs: [], tokenIds: [], onUnknownMinion: 'refuse', tick: 1 }),
    minion: () => ({ master: MASTER, id: MINION, collections: [], registeredBy: 't', tick: 1 }),
    tree: () => createCollectionTree(estate.collections),
    scope: (env) => estate.rows.filter((row) => row.pillarenv === env),
  };
  const plan = planMerge(view, { master: MASTER, minionId: MINION, pillarenv, tokenId: undefined }, 'trust');
  assert.equal(plan.kind, 'merged');
  return (plan as Extract<typeof plan, { kind: 'merged' }>).merged;
}

const someRequest = fc
  .array(someEnv, { minLength: 1, maxLength: 8 })
  .map((envs) => envs.join(','))
  .filter((text) => text !== 'auto');

test('the merge gives what seed 000 says, for any estate and any request', () => {
  fc.assert(
    fc.property(someEstate, someRequest, (estate, pillarenv) => {
      const winners = [...merge(estate, pillarenv)].map(([name, { winner }]) => [name, winner.pid]);
      assert.deepEqual(new Map(winners as [string, string][]), getMerged(estate, pillarenv));
    }),
    { numRuns: 3000 },
  );
});

test('what was overridden is named nearest first: each would win if those before it were not there', () => {
  fc.assert(
    fc.property(someEstate, someRequest, (estate, pillarenv) => {
      for (const [name, { winner, overrode }] of merge(estate, pillarenv)) {
        let rows = estate.rows;
        for (const record of [winner, ...overrode]) {
          assert.equal(getMerged({ ...estate, rows }, pillarenv).get(name), record.pid);
          rows = rows.filter((row) => row.pid !== record.pid);
        }
        assert.equal(getMerged({ ...estate, rows }, pillarenv).has(name), false);
      }
    }),
    { numRuns: 1000 },
  );
});

test('a scope applied twice does not override itself', () => {
  const [low, high] = [pillar('p1', 's1', 'x'), pillar('p2', 's2', 'x')];
  const rows: Record<string, PillarRecord[]> = { s1: [low], s2: [high] };
  const merged = mergeScopes(['s1', 's2', 's1'], (scope) => rows[scope] ?? []);
  assert.deepEqual(merged.get('x'), { winner: low, overrode: [high] });
});
