import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import { fromPlain, parseValue, type Value } from '@colonnade/value';
import { checkOpenValue, isSealedValue } from './pillar-value.ts';

const nested = (levels: number) => parseValue('['.repeat(levels) + ']'.repeat(levels), { maxDepth: 100 });
const invalid = (thrown: unknown) =>
  thrown instanceof ColonnadeError && thrown.code === 'value_invalid' && thrown.field === 'value';
const sealed = (change: object = {}): Value =>
  fromPlain({
    $enc: {
      v: 1,
      alg: 'A256GCM',
      kid: 'k',
      nonce_b64: 'AAAA',
      ct_b64: 'AAAA',
      dek_wrap_alg: 'A256GCM',
      dek_wrap_nonce_b64: 'AAAA',
      dek_wrapped_b64: 'AAAA',
      ...change,
    },
  });

test('depth and size: the limit itself is allowed, one more is not', () => {
  checkOpenValue(nested(LIMITS.valueDepth));
  assert.throws(() => checkOpenValue(nested(LIMITS.valueDepth + 1)), invalid);
  // Canonical bytes: the quotes count, and a character outside ASCII counts as its UTF-8.
  checkOpenValue('x'.repeat(LIMITS.valueBytes - 2));
  assert.throws(() => checkOpenValue('x'.repeat(LIMITS.valueBytes - 1)), invalid);
  checkOpenValue('ж'.repeat(LIMITS.valueBytes / 2 - 1));
  assert.throws(() => checkOpenValue('ж'.repeat(LIMITS.valueBytes / 2)), invalid);
});

test('the key $enc may stand nowhere in a value that is to be kept as it is', () => {
  for (const text of ['{"$enc":1}', '{"a":{"$enc":1}}', '[[{"$enc":{}}]]', '{"a":1,"$enc":null}']) {
    assert.throws(() => checkOpenValue(parseValue(text)), invalid, text);
  }
  checkOpenValue(parseValue('{"a":"$enc","$Enc":1,"enc":{"$ enc":1}}'));
});

test('a sealed value is known by its key, and must be whole', () => {
  assert.ok(isSealedValue(sealed()));
  assert.ok(!isSealedValue('text') && !isSealedValue(parseValue('{"a":{"$enc":1}}')));
  for (const change of [
    { v: 2 },
    { v: 1.5 },
    { alg: 'none' },
    { kid: '' },
    { ct_b64: 'AAA' },
    { ct_b64: 'A A=' },
    { more: 1 },
  ]) {
    assert.throws(() => isSealedValue(sealed(change)), invalid, JSON.stringify(change));
  }
  const extra = Object.assign(Object.create(null), sealed() as object, { more: 1n }) as Value;
  assert.throws(() => isSealedValue(extra), invalid);
});

test('a sealed value is as small as an open one', () => {
  const ofBytes = (bytes: number) => sealed({ ct_b64: Buffer.alloc(bytes + 16).toString('base64') });
  assert.ok(isSealedValue(ofBytes(LIMITS.valueBytes)));
  assert.throws(() => isSealedValue(ofBytes(LIMITS.valueBytes + 1)), invalid);
});
