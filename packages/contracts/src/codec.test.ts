import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { decode, encodeText, int, zValue } from './codec.ts';
import { ColonnadeError } from './errors.ts';

const schema = z.strictObject({ n: int({ min: 0, max: 10 }), v: zValue, o: z.string().optional() });

test('integers cross as integers, values keep their kinds, absent stays absent', () => {
  const text = '{"n":3,"v":{"big":9223372036854775807,"float":1.0,"int":1}}';
  const message = decode(schema, text);
  assert.equal(message.n, 3);
  assert.equal(encodeText(schema, message), text);
  assert.equal(encodeText(schema, { n: 3, v: null, o: undefined }), '{"n":3,"v":null}');
});

describe('what does not fit is refused with its place', () => {
  const table: readonly [string, string, RegExp][] = [
    ['a float for an integer', '{"n":1.0,"v":1}', /^n: /u],
    ['out of bounds', '{"n":11,"v":1}', /^n: /u],
    ['an unknown field', '{"n":1,"v":1,"x":1}', /unknown field "x"/u],
    ['a missing field', '{"n":1}', /^v: /u],
    ['several faults at once', '{"n":99}', /n: .*; v: /u],
    ['a duplicate key', '{"n":1,"n":2,"v":1}', /there already \(line 1, column 8\)/u],
    ['not an object', '[]', /./u],
  ];
  for (const [name, text, message] of table) {
    test(name, () => {
      assert.throws(
        () => decode(schema, text),
        (error) =>
          error instanceof ColonnadeError && error.code === 'bad_request' && message.test(error.message),
      );
    });
  }
  test('a body over its limit is too_large', () => {
    assert.throws(() => decode(schema, '{"n":1,"v":"xxxxxxxxxxxxxxxxx"}', { maxBytes: 10 }), {
      code: 'too_large',
    });
  });
  test('a message of ours that breaks its schema is our fault', () => {
    assert.throws(() => encodeText(schema, { n: 99, v: null }), { code: 'internal' });
  });
});
