import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type TempDir, tempDir } from '../../../../test/support/temp.ts';
import { makeCa } from '../../test/pki.ts';
import { bundleFor, dropAt, mayDropOld, type TrustFacts } from './trust-order.ts';

describe('what a node trusts', () => {
  let dir: TempDir;
  let [older, newer] = ['', ''];
  before(async () => {
    dir = await tempDir('trust');
    [older, newer] = ['older', 'newer'].map((name) => `${makeCa(dir.path, name).cert.trim()}\n`) as [
      string,
      string,
    ];
  });
  after(() => dir[Symbol.asyncDispose]());

  const facts = (changes: Partial<TrustFacts> = {}): TrustFacts => ({
    source: newer,
    servedSinceMs: undefined,
    dropAfterMs: 1000,
    nowMs: 5000,
    ...changes,
  });

  test('is old and new together first, and the new alone long after it is served', () => {
    assert.equal(bundleFor(facts(), older).text, newer + older);
    assert.equal(bundleFor(facts({ servedSinceMs: 4500 }), newer + older).text, newer + older);
    assert.equal(bundleFor(facts({ servedSinceMs: 4000 }), newer + older).text, newer);
    assert.equal(bundleFor(facts(), '').text, newer);
  });

  test('is not touched when it trusts the new CA already', () => {
    const text = `# by hand\n${older}${newer}`;
    assert.equal(bundleFor(facts(), text).text, text);
  });

  test('changes again at a known moment', () => {
    assert.equal(dropAt(facts()), undefined);
    assert.equal(dropAt(facts({ servedSinceMs: 4500 })), 5500);
    assert.equal(dropAt(facts({ servedSinceMs: 4000 })), undefined);
    assert.equal(mayDropOld(facts({ servedSinceMs: 4000 })), true);
  });
});
