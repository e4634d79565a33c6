import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { checkIfMatch, etagOf, readConditions } from './etag.ts';

const code = (wanted: string) => (thrown: unknown) =>
  thrown instanceof ColonnadeError && thrown.code === wanted;

test('an ETag tells apart record, life of the estate and tick, whatever the id holds', () => {
  const tags = [etagOf('a', '11111111-x', 1), etagOf('a', '22222222-x', 1), etagOf('a', '11111111-x', 2)];
  assert.equal(new Set(tags).size, 3);
  assert.equal(etagOf('ж "1", x', '11111111-x', 7), '"%D0%B6%20%221%22%2C%20x.11111111.7"');
});

test('If-Match takes lists and *, and compares strongly', () => {
  const tag = etagOf('a', '11111111', 1);
  for (const header of [tag, '*', `"other", ${tag}`, ` ${tag} `, `W/"x",${tag}`]) {
    checkIfMatch(readConditions(header, undefined), tag);
  }
  for (const header of ['"other"', `W/${tag}`, tag.toUpperCase()]) {
    assert.throws(() => checkIfMatch(readConditions(header, undefined), tag), code('precondition_failed'));
  }
  assert.throws(() => checkIfMatch(readConditions(undefined, undefined), tag), code('precondition_required'));
});

test('headers that cannot be read are refused', () => {
  for (const header of ['', 'x', '"x', '"x" "y"', '"x",', 'w/"x"', '*, "x"', '"\u0001"']) {
    assert.throws(() => readConditions(header, undefined), code('bad_request'), header);
  }
  assert.throws(() => readConditions(undefined, '"x"'), code('bad_request'));
  assert.deepEqual(readConditions(undefined, ' * '), { ifMatch: undefined, ifNoneMatch: '*' });
});
