import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { decode, encodeText, int, zValue } from './codec.ts';
import { ColonnadeError } from './errors.ts';

const schema = z.strictObject({
  n: int({ min: 0, max: 10 }),
  v: zValue,
  o: z.string().optional(),
  i: z.strictObject({ b: z.boolean() }).optional(),
});

test('integers cross as integers, values keep their kinds, absent stays absent', () => {
  const text = '{"n":3,"v":{"big":9223372036854775807,"float":1.0,"int":1}}';
  const message = decode(schema, text);
  assert.equal(message.n, 3);
  assert.equal(encodeText(schema, message), text);
  assert.equal(encodeText(schema, { n: 3, v: null, o: undefined }), '{"n":3,"v":null}');
});

describe('what does not fit is refused with its place', () => {
  const table: readonly [string, string, RegExp][] = [
    ['a float for an integer', '{"n":1.0,"v":1}', /^n: must be an integer$/u],
    ['out of bounds', '{"n":11,"v":1}', /^n: must be from 0 to 10$/u],
    ['below its bounds', '{"n":-1,"v":1}', /^n: must be from 0 to 10$/u],
    ['an unknown field', '{"n":1,"v":1,"x":1}', /unknown field "x"/u],
    ['a missing field', '{"n":1}', /^v: is missing$/u],
    ['several faults at once', '{"n":99}', /^n: must be from 0 to 10; v: is missing$/u],
    ['another kind than text', '{"n":1,"v":1,"o":1}', /^o: must be text$/u],
    ['another kind than an object', '{"n":1,"v":1,"i":7}', /^i: must be an object$/u],
    ['a missing field of an inner object', '{"n":1,"v":1,"i":{}}', /^i\.b: is missing$/u],
    ['null is not missing', '{"n":1,"v":1,"i":{"b":null}}', /^i\.b: must be true or false$/u],
    ['a duplicate key', '{"n":1,"n":2,"v":1}', /there already \(line 1, column 8\)/u],
    ['not an object', '[]', /^must be an object$/u],
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
  test('the field is told, also of what nobody knows', () => {
    const fieldOf = (text: string) => {
      try {
        return decode(schema, text);
      } catch (thrown) {
        return (thrown as ColonnadeError).field;
      }
    };
    assert.equal(fieldOf('{"n":1,"v":1,"x":1}'), 'x');
    assert.equal(fieldOf('{"n":1,"v":1,"i":{"b":true,"x":1}}'), 'i.x');
    assert.equal(fieldOf('{"n":11,"v":1}'), 'n');
    assert.equal(fieldOf('[]'), undefined);
  });
  test('a body over its limit is too_large', () => {
    assert.throws(() => decode(schema, '{"n":1,"v":"xxxxxxxxxxxxxxxxx"}', { maxBytes: 10 }), {
      code: 'too_large',
    });
  });
  test('a message of ours that breaks its schema is our fault', () => {
    assert.throws(() => encodeText(schema, { n: 99, v: null }), { code: 'internal' });
  });
});
