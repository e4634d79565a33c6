import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type Enc, encodeTree, zEnc } from '@colonnade/contracts';
import { parseValue, toPlain, type Value, ValueError, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { assertRefused, fuzzRuns, mutantsOf, textChanges } from '../../../test/support/fuzz.ts';
import { encMutants } from '../../../test/support/fuzz-enc.ts';
import { type Kek, type Keys, openValue, resealValue, rewrapDek, sealValue } from '../src/envelope.ts';

const keks: Kek[] = ['pillars-v1', 'pillars-v2'].map((kid) => ({
  kid,
  key: createSecretKey(randomBytes(32)),
}));
const keysOf = (active: number): Keys => ({
  active: () => keks[active] as Kek,
  find: (kid) => keks.find((kek) => kek.kid === kid),
  prepare: async () => {},
});
const KEYS = keysOf(0);
const AAD = 'minion:web1:minion_id:web1;master:m1:db.password';
const OTHER = 'minion:web2:minion_id:web2;master:m1:db.password';
const SECRET = 'correct horse battery staple';

const seal = (keys: Keys, aad: string, value: string): Value => encodeTree(zEnc, sealValue(keys, aad, value));
/** Those that open here, and what is in them; one more was sealed for another place. */
const good = [
  { sealed: seal(KEYS, AAD, SECRET), plain: SECRET },
  { sealed: seal(KEYS, AAD, 'another'), plain: 'another' },
  { sealed: seal(keysOf(1), AAD, `${SECRET}!`), plain: `${SECRET}!` },
];
const fieldsOf = (sealed: Value) => (toPlain(sealed) as { $enc: Record<string, string | number> }).$enc;
const genuine = [...good.map(({ sealed }) => sealed), seal(KEYS, OTHER, SECRET)].map(fieldsOf);
const refusal = {
  codes: ['value_invalid', 'kid_unknown', 'decrypt_failed'],
  secrets: [
    SECRET,
    ...genuine.flatMap(({ ct_b64, dek_wrapped_b64 }) => [String(ct_b64), String(dek_wrapped_b64)]),
  ],
};

/** Undefined: no message holds that, which is a refusal too. */
function parse(text: string): Value | undefined {
  try {
    return parseValue(Buffer.from(text));
  } catch (thrown) {
    assert.ok(thrown instanceof ValueError, String(thrown));
    return undefined;
  }
}

test('of sealed values that were changed anywhere only those open that are what was sealed here', async () => {
  let opened = 0;
  let read = 0;
  await fc.assert(
    fc.asyncProperty(encMutants(genuine), async (text) => {
      const value = parse(text);
      if (value === undefined) return;
      read += 1;
      const same = good.find(({ sealed }) => valuesEqual(sealed, value));
      if (same === undefined) {
        await assertRefused(() => openValue(KEYS, AAD, value), refusal);
        await assertRefused(() => resealValue(KEYS, { from: AAD, to: OTHER }, value), refusal);
      } else {
        opened += 1;
        assert.equal(openValue(KEYS, AAD, value), same.plain);
        const moved = encodeTree(zEnc, resealValue(KEYS, { from: AAD, to: OTHER }, value));
        assert.equal(openValue(KEYS, OTHER, moved), same.plain);
      }
    }),
    fuzzRuns(4000),
  );
  // Else the mutants would be too coarse to find anything.
  assert.ok(read > 500 && opened > 5, `${read} read, ${opened} genuine`);
});

test('of wrappings that were changed only those are renewed that wrap what was sealed here', async () => {
  type Wrapping = Pick<Enc['$enc'], 'kid' | 'dek_wrap_nonce_b64' | 'dek_wrapped_b64'>;
  const names = ['kid', 'dek_wrap_nonce_b64', 'dek_wrapped_b64'] as const;
  const pick = (fields: Record<string, unknown>) =>
    Object.fromEntries(names.map((name) => [name, fields[name]])) as Wrapping;
  const here = good.map(({ sealed }) => pick(fieldsOf(sealed)));
  const texts = genuine.flatMap((fields) => names.map((name) => String(fields[name])));
  const changed = fc.tuple(fc.constantFrom(...genuine), fc.constantFrom(...genuine), fc.subarray([...names]));
  await fc.assert(
    fc.asyncProperty(
      changed,
      fc.constantFrom(...names),
      textChanges(texts),
      fc.boolean(),
      async (...asked) => {
        const [[one, other, swapped], name, change, isChanged] = asked;
        const mixed = pick({ ...one, ...Object.fromEntries(swapped.map((field) => [field, other[field]])) });
        const wrapping = isChanged ? { ...mixed, [name]: change(mixed[name]) } : mixed;
        if (here.some((known) => names.every((field) => known[field] === wrapping[field]))) {
          assert.equal(rewrapDek(keysOf(1), AAD, wrapping).kid, 'pillars-v2');
          return;
        }
        await assertRefused(() => rewrapDek(keysOf(1), AAD, wrapping), refusal);
      },
    ),
    fuzzRuns(1500),
  );
});

test('a place that differs in anything opens nothing', async () => {
  await fc.assert(
    fc.asyncProperty(mutantsOf([AAD, OTHER]), fc.constantFrom(...good), async (aad, { sealed }) => {
      if (Buffer.from(aad).equals(Buffer.from(AAD))) return;
      await assertRefused(() => openValue(KEYS, aad, sealed), refusal);
    }),
    fuzzRuns(1000),
  );
});
