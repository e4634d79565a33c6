import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, parseValue } from '@colonnade/value';
import { arbitraryValue } from '@colonnade/value/testing';
import fc from 'fast-check';
import { BSON, Decimal128, Int32, Long, ObjectId } from 'mongodb';
import { packStoredValue, readStoredValue } from './stored-value.ts';

const asDriverReads = (document: object) =>
  BSON.deserialize(BSON.serialize(document), { promoteValues: false });

const roundTrip = (text: string) => {
  const stored = packStoredValue(parseValue(text, { maxDepth: 512 }));
  return { stored, text: canonicalText(readStoredValue(asDriverReads(stored))) };
};

test('integers, floats and text stay what they are, as ordinary BSON', () => {
  const texts = [
    'null',
    'true',
    '""',
    '"\\u0000"',
    '0',
    '-0.0',
    '1',
    '1.0',
    '[1,1.0,[],{}]',
    '{"":{"a.b":1}}',
  ];
  const edges = ['2147483647', '2147483648', '-2147483649', '9223372036854775807', '-9223372036854775808'];
  for (const text of [...texts, ...edges]) {
    const { stored, text: back } = roundTrip(text);
    assert.equal(back, text);
    assert.ok('value' in stored, text);
  }
  const small = packStoredValue(7n) as { value: unknown };
  const large = packStoredValue(2n ** 40n) as { value: unknown };
  assert.ok(small.value instanceof Int32 && large.value instanceof Long);
});

test('keys that mean something to MongoDB, its driver or JavaScript are only keys', () => {
  const keys = [
    '$enc',
    '$set',
    'a.b',
    '$a.b',
    '__proto__',
    'constructor',
    'toJSON',
    'toBSON',
    '_bsontype',
    '_id',
  ];
  for (const key of keys) {
    const text = `{${JSON.stringify(key)}:{${JSON.stringify(key)}:"ObjectId"}}`;
    const { stored, text: back } = roundTrip(text);
    assert.equal(back, text);
    assert.ok('value' in stored, key);
  }
});

test('what BSON would not give back the same is kept as text, and no value stands beside it', () => {
  const deep = `${'['.repeat(120)}1${']'.repeat(120)}`;
  for (const text of ['{"a\\u0000b":1}', '{"$id":1,"$ref":"a.b"}', '[{"$db":1}]', deep]) {
    const { stored, text: back } = roundTrip(text);
    assert.equal(back, text);
    assert.deepEqual(Object.keys(stored), ['value_json'], text);
  }
});

test('any value comes back the same', () => {
  fc.assert(
    fc.property(arbitraryValue(), (value) => {
      assert.equal(roundTrip(canonicalText(value)).text, canonicalText(value));
    }),
    { numRuns: 1000 },
  );
});

test('a type that JSON does not have, or a number that is none, is no value', () => {
  const foreign = [new ObjectId(), new Date(0), Decimal128.fromString('1'), Number.NaN, /a/u, undefined];
  for (const value of foreign) {
    const read = () => readStoredValue(asDriverReads({ value }));
    // BSON has no undefined; the driver writes null for it only where it stands in a list.
    if (value === undefined) assert.throws(() => readStoredValue({}), ColonnadeError);
    else assert.throws(read, { code: 'internal' }, String(value));
  }
});
