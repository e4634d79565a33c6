import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clipText } from './clip.ts';

test('a cut text is bounded and well formed, wherever the cut falls', () => {
  for (let max = 1; max < 12; max += 1) {
    const cut = clipText('a😀b😀c😀d', max);
    assert.ok(cut.length <= max, `${max}`);
    assert.ok(cut.isWellFormed());
  }
  assert.equal(clipText('short', 10), 'short');
  assert.ok(clipText('\ud800', 10).isWellFormed());
});
