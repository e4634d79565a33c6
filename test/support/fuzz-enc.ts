import fc from 'fast-check';
import { anyJson, mutantsOf, ODD_TEXTS, textChanges } from './fuzz.ts';

/** The eight fields of a sealed value, as JSON has them. */
export type EncFields = Readonly<Record<string, string | number>>;

/** Names and JSON texts, in their order: a name may stand twice, and a text be none. */
type Members = readonly (readonly [string, string])[];
type Change = (members: Members) => Members;

const BYTES = ['nonce_b64', 'ct_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64'];
const FIELDS = ['v', 'alg', 'kid', 'dek_wrap_alg', ...BYTES];
const NUMBERS = [
  '1.0',
  '1e0',
  '-0',
  '0',
  '2',
  '01',
  '+1',
  '1n',
  '9223372036854775808',
  '-9223372036854775809',
  '0x1',
];
/** Beyond what any value may have, and below what a message may have. */
const HUGE = 'A'.repeat(400_000);

/**
 * JSON texts of sealed values after one or two changes: in a field, between two of them, of a type, of the form. Some are no JSON, and
 * some are genuine again.
 */
export function encMutants(genuine: readonly EncFields[]): fc.Arbitrary<string> {
  const change = memberChanges(genuine);
  const inside = fc
    .tuple(fc.constantFrom(...genuine), fc.array(change, { minLength: 1, maxLength: 2 }), around)
    .map(([fields, changes, wrap]) => wrap(write(changes.reduce((now, one) => one(now), membersOf(fields)))));
  const whole = mutantsOf(genuine.map((fields) => write(membersOf(fields))));
  return fc.oneof({ weight: 5, arbitrary: inside }, { weight: 1, arbitrary: whole });
}

/** A sealed value as it is stored. */
export function encText(fields: EncFields): string {
  return write(membersOf(fields));
}

/** What stands around the eight fields; mostly what should. */
const around = fc.oneof(
  { weight: 9, arbitrary: fc.constant((text: string) => text) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<((text: string) => string)[]>(
      (text) => `[${text}]`,
      (text) => `{"$enc":${text}}`,
      (text) => `${text.slice(0, -1)},"x":1}`,
      (text) => `${text.slice(0, -1)},"__proto__":{}}`,
      (text) => `${text.slice(0, -1)},${text.slice(1)}`,
      (text) => JSON.stringify(text),
      (text) => text + text,
      (text) => text.slice(0, -1),
      (text) => ` ${text} `,
      (text) => `\ufeff${text}`,
      (text) => text.replace('$enc', '$ENC'),
      (text) => text.replace('$enc', '\\u0024enc'),
    ),
  },
);

function memberChanges(genuine: readonly EncFields[]): fc.Arbitrary<Change> {
  const field = fc.constantFrom(...FIELDS);
  const other = fc.constantFrom(...genuine);
  const texts = genuine.flatMap((one) => Object.values(one).map(String));
  const json = fc.oneof(
    anyJson().map((value) => JSON.stringify(value)),
    fc.constantFrom(...NUMBERS, JSON.stringify(HUGE)),
  );
  const oddName = fc.constantFrom(...ODD_TEXTS, 'extra', '$enc', 'V', 'v ', 'kid\u0000', 'ct_b64\u200b');
  return fc.oneof(
    fc.tuple(field, textChanges(texts)).map(([name, change]) => set(name, (text) => onText(text, change))),
    fc
      .tuple(fc.constantFrom(...BYTES), byteChanges())
      .map(([name, how]) => set(name, (text) => onBytes(text, how))),
    fc.tuple(field, field, other).map(([to, from, fields]) => set(to, () => JSON.stringify(fields[from]))),
    fc.tuple(field, json).map(([name, text]) => set(name, () => text)),
    field.map(
      (name): Change =>
        (members) =>
          members.filter(([one]) => one !== name),
    ),
    fc.tuple(oddName, json).map(
      ([name, text]): Change =>
        (members) => [...members, [name, text]],
    ),
    fc.tuple(field, other).map(([name, fields]): Change => {
      return (members) => [...members, [name, JSON.stringify(fields[name])]];
    }),
    fc.tuple(field, oddName).map(([name, next]): Change => {
      return (members) => members.map(([one, text]) => [one === name ? next : one, text]);
    }),
    fc.shuffledSubarray(FIELDS, { minLength: FIELDS.length }).map((order): Change => {
      return (members) => members.toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b));
    }),
  );
}

function byteChanges(): fc.Arbitrary<(bytes: Buffer) => Uint8Array> {
  return fc.oneof(
    fc.tuple(fc.nat(), fc.nat(7)).map(([place, bit]) => (bytes: Buffer) => {
      const at = place % Math.max(1, bytes.length);
      return bytes.map((byte, i) => (i === at ? byte ^ (1 << bit) : byte));
    }),
    fc.nat(20).map((count) => (bytes: Buffer) => bytes.subarray(0, Math.max(0, bytes.length - count))),
    fc.nat(20).map((count) => (bytes: Buffer) => bytes.subarray(count)),
    fc
      .uint8Array({ minLength: 1, maxLength: 20 })
      .map((more) => (bytes: Buffer) => Buffer.concat([bytes, more])),
    fc.constantFrom<((bytes: Buffer) => Uint8Array)[]>(
      (bytes) => Buffer.concat([bytes, bytes]),
      (bytes) => bytes.toReversed(),
      (bytes) => Buffer.alloc(bytes.length),
    ),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => () => bytes),
  );
}

function membersOf(fields: EncFields): Members {
  return Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]);
}

function write(members: Members): string {
  return `{"$enc":{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}}`;
}

function set(name: string, how: (text: string) => string): Change {
  return (members) => members.map(([one, text]) => [one, one === name ? how(text) : text]);
}

/** On what a JSON text says; where it says no text, on itself. */
function onText(json: string, change: (text: string) => string): string {
  return json.startsWith('"') ? JSON.stringify(change(unquote(json))) : change(json);
}

function onBytes(json: string, how: (bytes: Buffer) => Uint8Array): string {
  return JSON.stringify(Buffer.from(how(Buffer.from(unquote(json), 'base64'))).toString('base64'));
}

function unquote(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    return json;
  }
}
