import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, type ScopedRole, TGT_TYPES } from '@colonnade/contracts';
import type { CollectionRecord } from '@colonnade/estate-store';
import fc from 'fast-check';
import { rightsOf } from './authenticate.ts';
import { isInScope, requireOn, selectOn, type Target } from './scope.ts';

/** a ← b ← c, and z beside them. */
const TREE: readonly CollectionRecord[] = [
  ['a', undefined],
  ['b', 'a'],
  ['c', 'b'],
  ['z', undefined],
].map(([id, parentId]) => ({ id: id as string, name: 'x', parentId, owner: 'ada', tick: 1 }));

const tree = {
  listCollections: async () => TREE,
  async getBranch(id: string) {
    const self = TREE.find((one) => one.id === id);
    if (self === undefined) return [];
    const above: readonly CollectionRecord[] =
      self.parentId === undefined ? [] : await this.getBranch(self.parentId);
    return [...above, self];
  },
};

function caller(...scopedRoles: readonly ScopedRole[]) {
  return rightsOf({ roles: [], scopedRoles }, tree);
}

const pillar = (tgtType: Target['tgtType'], tgtId: string, name: string): Target => ({
  tgtType,
  tgtId,
  name,
});

test('a collection in a scope stands for all below it, and for nothing above or beside', () => {
  const scope = { role: 'viewer', collections: ['b'] } as const satisfies ScopedRole;
  const at = (id: string, branch: readonly string[]) =>
    isInScope({ ...scope, collections: ['b'] }, 'estate:read', pillar('collection', id, 'x'), branch);
  assert.deepEqual(
    [at('a', ['a']), at('b', ['a', 'b']), at('c', ['a', 'b', 'c']), at('z', ['z'])],
    [false, true, true, false],
  );
  for (const type of ['root', 'minion', 'task', 'task_tpl'] as const) {
    assert.equal(
      isInScope({ ...scope, collections: ['b'] }, 'estate:read', pillar(type, 'b', 'x'), []),
      false,
    );
  }
});

test('what has no name is read, and not written, by who has prefixes of names', () => {
  const scope: ScopedRole = { role: 'editor', name_prefixes: ['app_', 'web'] };
  const ask = (permission: 'estate:read' | 'minion:write', target: Target) =>
    isInScope(scope, permission, target, []);
  assert.equal(ask('estate:read', pillar('root', 'root', 'app_x')), true);
  assert.equal(ask('estate:read', pillar('root', 'root', 'App_x')), false);
  assert.equal(ask('estate:read', { tgtType: 'minion', tgtId: 'm' }), true);
  assert.equal(ask('minion:write', { tgtType: 'minion', tgtId: 'm' }), false);
});

const zAnyTarget = fc.record({
  tgtType: fc.constantFrom(...TGT_TYPES),
  tgtId: fc.constantFrom('a', 'b', 'c', 'z', 'new'),
  name: fc.constantFrom('app_x', 'web', 'other'),
});
const zAnyRole = fc.record(
  {
    role: fc.constantFrom('viewer' as const, 'editor' as const, 'secret-reader' as const),
    tgt_types: fc.subarray([...TGT_TYPES], { minLength: 1 }),
    collections: fc.subarray(['a', 'b', 'c', 'z'], { minLength: 1 }),
    name_prefixes: fc.subarray(['app', 'w', 'o'], { minLength: 1 }),
  },
  { requiredKeys: ['role'] },
);

test('asking for one target and filtering a list agree, and more roles never take anything away', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(zAnyRole, { maxLength: 3 }), zAnyTarget, async (roles, target) => {
      for (const permission of ['estate:read', 'pillar:write', 'secret:reveal', 'token:write'] as const) {
        const one = caller(...(roles as ScopedRole[]));
        const may = await requireOn(one, permission, target).then(
          () => true,
          (thrown) => {
            assert.equal((thrown as ColonnadeError).code, 'forbidden');
            return false;
          },
        );
        assert.equal((await selectOn(one, permission))(target), may);
        const more = caller(...(roles as ScopedRole[]), { role: 'viewer', tgt_types: ['root'] });
        if (may) await requireOn(more, permission, target);
        const some = roles.some((role) =>
          rightsOf({ roles: [role.role], scopedRoles: [] }, tree).permissions.has(permission),
        );
        if (!some) assert.equal(may, false);
      }
    }),
    { numRuns: 500 },
  );
});

test('a role for the whole estate asks nothing of the tree', async () => {
  const broken = {
    getBranch: () => Promise.reject(new ColonnadeError('unavailable', 'away')),
    listCollections: () => Promise.reject(new ColonnadeError('unavailable', 'away')),
  };
  const whole = rightsOf(
    { roles: ['editor'], scopedRoles: [{ role: 'viewer', collections: ['a'] }] },
    broken,
  );
  await requireOn(whole, 'pillar:write', pillar('collection', 'z', 'x'));
  assert.equal((await selectOn(whole, 'estate:read'))(pillar('collection', 'z', 'x')), true);
});
