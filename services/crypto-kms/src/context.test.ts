import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError, type OpenContext } from '@colonnade/contracts';
import { aadOf, checkMergeScope, checkOpenContext, checkSealContext } from './context.ts';

type Row = [tgt_type: OpenContext['tgt_type'], tgt_id: string, pillarenv: string, name?: string];
const contextOf = ([tgt_type, tgt_id, pillarenv, name = 'db']: Row): OpenContext => ({
  tgt_type,
  tgt_id,
  pillarenv,
  name,
});

function codeOf(check: () => void): string {
  try {
    check();
    return 'ok';
  } catch (thrown) {
    assert.ok(thrown instanceof ColonnadeError);
    return thrown.code;
  }
}

/** Seal, open for the API, merge for web1 of m1. */
const table: [Row, seal: boolean, open: boolean, merge: boolean][] = [
  [['root', 'root', 'base'], true, true, true],
  [['root', 'root', 'prod'], false, true, true],
  [['root', '', 'base'], false, true, true],
  [['root', 'x:base', 'base'], false, true, false],
  [['root', 'root', 'minion_id:web1;master:m1'], false, false, false],
  [['root', 'root', 'base,prod'], false, false, false],
  [['root', 'root', ''], false, false, false],
  [['minion', 'web1', 'minion_id:web1;master:m1'], true, true, true],
  [['minion', '65f0', 'minion_id:web1;master:m1'], false, true, true],
  [['minion', 'web1:minion_id:web1;master:m1:x', 'minion_id:web1;master:m1'], false, true, false],
  [['minion', 'web2', 'minion_id:web2;master:m1'], true, true, false],
  [['minion', 'web1', 'minion_id:web1;master:m2'], true, true, false],
  [['minion', 'web1', 'minion_id:web1'], false, false, false],
  [['minion', 'web1', 'base'], false, false, false],
  [['minion', 'web1', 'minion_id:web1;master:m1;x:y'], false, true, false],
  [['minion', 'a/b', 'minion_id:a/b;master:m1'], false, true, false],
  [['collection', 'c1', 'collection:c1;user:alice'], true, true, true],
  [['collection', 'c1', 'collection:c1'], false, true, true],
  [['collection', 'c2', 'collection:c1;user:alice'], false, true, true],
  [['collection', 'c1', 'task:c1'], false, false, false],
  [['collection', 'c1', 'collection:'], false, false, false],
  [['task', 't1', 'task:t1'], true, true, true],
  [['task', 't2', 'task:t1'], false, true, false],
  [['task', 't1', 'task_tpl:t1;user:alice'], false, false, false],
  [['task_tpl', 't1', 'task_tpl:t1;user:alice'], true, true, false],
  [['task_tpl', 't1', 'task_tpl:t1'], false, true, false],
  [['task_tpl', 't1', 'task_tpl:t1;user:'], false, true, false],
  [['task_tpl', 't1', 'base'], false, false, false],
];

describe('which contexts may be sealed, opened for the API, opened for web1 of m1', () => {
  for (const [row, seal, open, merge] of table) {
    const context = contextOf(row);
    test(aadOf(context), () => {
      assert.equal(
        codeOf(() => checkSealContext(context)),
        seal ? 'ok' : 'bad_request',
      );
      assert.equal(
        codeOf(() => checkOpenContext(context)),
        open ? 'ok' : 'bad_request',
      );
      assert.equal(
        codeOf(() => checkMergeScope(context, 'm1', 'web1')),
        merge ? 'ok' : 'kms_refused',
      );
    });
  }
});

test('no scope a merge may open has the AAD of a minion it may not', () => {
  // Whatever the parts, a merge for web1 never reaches what is bound to web2.
  const foreign = 'minion:web2:minion_id:web2;master:m1:';
  const pieces = [
    'web2',
    'minion',
    'root',
    'base',
    'minion_id:web2;master:m1',
    'minion_id:web1;master:m1',
    'collection:c',
    'x',
    '',
    'web2:minion_id:web2;master:m1',
  ];
  let allowed = 0;
  for (const tgt_type of ['root', 'minion', 'collection', 'task', 'task_tpl'] as const)
    for (const tgt_id of pieces)
      for (const pillarenv of pieces)
        for (const name of pieces) {
          const context: OpenContext = { tgt_type, tgt_id, pillarenv, name };
          if (codeOf(() => checkMergeScope(context, 'm1', 'web1')) !== 'ok') continue;
          allowed += 1;
          assert.ok(!aadOf(context).startsWith(foreign), aadOf(context));
        }
  assert.ok(allowed > 100);
});
