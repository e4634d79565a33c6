import fc from 'fast-check';
import type { Value, ValueObject } from '../src/value.ts';

const INTEGER_BORDERS = [
  0n,
  1n,
  -1n,
  2n ** 31n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  -(2n ** 63n),
];

const FLOAT_BORDERS = [
  0,
  -0,
  1,
  0.1,
  1e15,
  9999999999999998,
  1e16,
  1e21,
  1e22,
  1e-4,
  0.00009999999999999999,
  1e-5,
  1e-6,
  1e-7,
  5e-324,
  2.2250738585072014e-308,
  Number.MAX_VALUE,
  2 ** 53,
  123456789012345,
];

/** Characters that writers of JSON and YAML treat in ways of their own. */
const SPECIAL_CHARACTERS = [
  ...'\0\b\t\n\v\f\r\x1b\x1f "\'\\/:#-?{}[],&*!|>%@`=~<',
  ...'\x7f\x85\xa0\xadé\u2028\u2029\ud7ff\ue000\ufeff\ufffd\uffff\u{10000}\u{1f600}\u{10ffff}',
];

/** Texts that some reader of YAML takes for another type. */
const TYPED_TEXTS = [
  ...['yes', 'No', 'on', 'OFF', 'y', 'true', 'null', '~', '', '=', '<<', '---', '...', '-', '?'],
  ...['0644', '0o17', '0x1F', '0b1', '1_000', '1:30', '1:30.5', '1e5', '1.', '.5', '.inf', '.nan'],
  ...['2024-01-01', '2024-01-01T00:00:00Z', '2024-1-1 1:00:00', '-1', '+1', '1.0', '- a', 'a: b', 'a #b'],
  ...['__proto__', 'constructor', 'a\nb\n', ' a\n b', 'a\n\n\nb\n\n', '\na', 'a \nb', '---\na\n', '...\nb'],
];

const integers = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -1000n, max: 1000n }),
  fc.constantFrom(...INTEGER_BORDERS),
);

const floats = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.tuple(fc.integer({ min: -99999, max: 99999 }), fc.integer({ min: -330, max: 300 })).map(toFloat),
  fc.constantFrom(...FLOAT_BORDERS),
);

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 20 }),
  fc.array(fc.constantFrom(...SPECIAL_CHARACTERS), { maxLength: 8 }).map((characters) => characters.join('')),
  fc.constantFrom(...TYPED_TEXTS),
);

/** Any value: integers to the borders of 64 bits, floats of every exponent, any Unicode, nested up to `maxDepth`. */
export function arbitraryValue(maxDepth = 4): fc.Arbitrary<Value> {
  return fc.letrec<{ value: Value }>((tie) => ({
    value: fc.oneof(
      { maxDepth, depthSize: 'small' },
      fc.oneof(fc.constantFrom(null, true, false), integers, floats, texts),
      fc.array(tie('value'), { maxLength: 6 }),
      fc.array(fc.tuple(texts, tie('value')), { maxLength: 6 }).map(toObject),
    ),
  })).value;
}

function toFloat([digits, exponent]: [number, number]): number {
  return Number(`${digits}e${exponent}`);
}

function toObject(entries: [string, Value][]): ValueObject {
  const object = Object.create(null) as ValueObject;
  for (const [key, value] of entries) object[key] = value;
  return object;
}
