import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError, zPillarCreate } from '@colonnade/contracts';
import { resolveTarget } from './target.ts';

const estate = {
  getMaster: async (id: string) => (id === 'm1' ? ({ id } as never) : undefined),
  getMinion: async (master: string, id: string) =>
    master === 'm1' && id === 'web-1' ? ({ id } as never) : undefined,
  getTask: async (id: string) => (id === 'k1' ? ({ id } as never) : undefined),
  getTemplate: async (id: string) => (id === 't1' ? ({ id } as never) : undefined),
  getCollection: async (id: string) => (id === 'c1' ? ({ id, owner: 'ann' } as never) : undefined),
};
type Asked = Parameters<typeof resolveTarget>[1];

const refusedFor = (asked: Asked, code: string, field: string) =>
  assert.rejects(resolveTarget(estate, asked, 'ann'), (thrown) => {
    assert.ok(thrown instanceof ColonnadeError);
    assert.deepEqual([thrown.code, thrown.field], [code, field]);
    return true;
  });

describe('seed 000, _resolve_target', () => {
  test('the canonical form of each target', async () => {
    const root = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' };
    assert.deepEqual(await resolveTarget(estate, { tgt_type: 'root' }, 'ann'), root);
    assert.deepEqual(await resolveTarget(estate, { tgt_type: 'root', tgt_id: 'root' }, 'ann'), root);
    const minion = { tgtType: 'minion', tgtId: 'web-1', pillarenv: 'minion_id:web-1;master:m1' };
    for (const id of [{ minion_id: 'web-1' }, { tgt_id: 'web-1' }, { minion_id: 'web-1', tgt_id: 'web-1' }]) {
      assert.deepEqual(
        await resolveTarget(estate, { tgt_type: 'minion', master: 'm1', ...id }, 'ann'),
        minion,
      );
    }
    const collection = { tgtType: 'collection', tgtId: 'c1', pillarenv: 'collection:c1;user:ann' };
    for (const id of [{ collection_id: 'c1' }, { tgt_id: 'c1' }]) {
      assert.deepEqual(await resolveTarget(estate, { tgt_type: 'collection', ...id }, 'ann'), collection);
    }
  });

  test('a target that is not in the estate', async () => {
    await refusedFor({ tgt_type: 'minion', minion_id: 'web-1', master: 'm2' }, 'unknown_master', 'master');
    await refusedFor({ tgt_type: 'minion', minion_id: 'web-2', master: 'm1' }, 'unknown_minion', 'minion_id');
    await refusedFor({ tgt_type: 'collection', collection_id: 'c2' }, 'unprocessable', 'collection_id');
  });

  test('a target that is told by halves, doubly or wrongly', async () => {
    await refusedFor({ tgt_type: 'minion', minion_id: 'web-1' }, 'unprocessable', 'master');
    await refusedFor({ tgt_type: 'minion', master: 'm1' }, 'unprocessable', 'minion_id');
    await refusedFor(
      { tgt_type: 'minion', master: 'm1', minion_id: 'web-1', tgt_id: 'web-2' },
      'unprocessable',
      'tgt_id',
    );
    await refusedFor(
      { tgt_type: 'minion', master: 'm1', tgt_id: 'web-1;master:m2' },
      'unprocessable',
      'tgt_id',
    );
    await refusedFor({ tgt_type: 'root', tgt_id: 'web-1' }, 'unprocessable', 'tgt_id');
    await refusedFor({ tgt_type: 'root', collection_id: 'c1' }, 'unprocessable', 'collection_id');
    await refusedFor(
      { tgt_type: 'collection', collection_id: 'c1', master: 'm1' },
      'unprocessable',
      'master',
    );
    for (const tgt_type of ['task', 'task_tpl'] as const) {
      await refusedFor({ tgt_type, tgt_id: 'nope' }, 'unprocessable', 'tgt_id');
      await refusedFor({ tgt_type }, 'unprocessable', 'tgt_id');
      await refusedFor({ tgt_type, tgt_id: 'k1', master: 'm1' }, 'unprocessable', 'master');
    }
  });

  test('a pillarenv the client sends changes nothing', async () => {
    const asked = zPillarCreate.parse({
      tgt_type: 'root',
      name: 'n',
      value: null,
      pillarenv: 'collection:c1',
    });
    assert.equal((await resolveTarget(estate, asked, 'ann')).pillarenv, 'base');
  });
});
