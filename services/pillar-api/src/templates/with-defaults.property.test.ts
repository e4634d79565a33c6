import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import fc from 'fast-check';
import { hasAnySite } from './fitting.ts';
import { indexSchema } from './schema-index.ts';
import { openSchema, type Validator } from './validator.ts';
import { putDefaults } from './with-defaults.ts';

const NAMES = ['a', 'b', 'c', 'kind'] as const;
const DEFS = ['one', 'two'] as const;
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

type Plain = Record<string, unknown>;

const scalar = fc.constantFrom<unknown>(0, 1, 5, 'x', 'y', true, null, 1.5);
const leaf: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    ...[true, {}, { type: 'integer' }, { type: 'string' }, { const: 'x' }, { const: 1 }, { minimum: 1 }],
    ...[{ enum: ['x', 1] }, { type: ['integer', 'string'], default: 0 }, { not: { const: 5 } }, false],
  ),
);

/** Schemas with branches, conditions, closed objects and references: to definitions, and to the schema itself. */
const someSchema: fc.Arbitrary<{ schema: Plain; dialect: string }> = fc
  .record({
    root: fc.letrec<{ schema: Plain; property: unknown }>((tie) => ({
      property: fc.oneof(
        { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.constantFrom<unknown>(...DEFS.map((name) => ({ $ref: `#/$defs/${name}` })), { $ref: '#' }),
        tie('schema'),
      ),
      schema: fc.oneof(
        { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<Plain>(...DEFS.map((name) => ({ $ref: `#/$defs/${name}` }))),
        fc.record(
          {
            properties: fc.dictionary(fc.constantFrom(...NAMES), tie('property'), {
              maxKeys: 3,
              noNullPrototype: true,
            }),
            allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
            anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
            oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
            if: tie('schema'),
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: tie('schema'),
            else: tie('schema'),
            additionalProperties: fc.constantFrom<unknown>(true, false, { type: 'string' }),
            unevaluatedProperties: fc.constantFrom<unknown>(false),
            required: fc.subarray([...NAMES], { maxLength: 1 }),
            dependentSchemas: fc.dictionary(fc.constantFrom(...NAMES), tie('schema'), {
              maxKeys: 1,
              noNullPrototype: true,
            }),
            patternProperties: fc.constantFrom<unknown>({ '^a': { type: 'integer' } }),
          },
          { requiredKeys: [] },
        ),
      ),
    })).schema,
    defs: fc.array(
      fc.record(
        {
          properties: fc.dictionary(
            fc.constantFrom(...NAMES),
            fc.oneof(
              leaf,
              fc.constantFrom<unknown>({ $ref: '#/$defs/one' }, { $ref: '#/$defs/two' }, { $ref: '#' }),
            ),
            { maxKeys: 3, noNullPrototype: true },
          ),
          oneOf: fc.array(
            fc.record({
              properties: fc.dictionary(fc.constantFrom(...NAMES), leaf, {
                maxKeys: 2,
                noNullPrototype: true,
              }),
            }),
            { minLength: 1, maxLength: 2 },
          ),
          additionalProperties: fc.constant(false),
        },
        { requiredKeys: [] },
      ),
      { minLength: 2, maxLength: 2 },
    ),
    dialect: fc.constantFrom('2020-12', '07'),
  })
  .map(({ root, defs, dialect }) => {
    const $defs = { one: defs[0], two: defs[1] };
    if (dialect === '2020-12') return { schema: { ...root, $defs }, dialect };
    return { schema: { $schema: DRAFT_07, ...root, $defs }, dialect };
  });

const instance: fc.Arbitrary<Value> = fc
  .dictionary(
    fc.constantFrom(...NAMES, 'other'),
    fc.oneof(scalar, fc.dictionary(fc.constantFrom(...NAMES), scalar, { maxKeys: 3, noNullPrototype: true })),
    { maxKeys: 4, noNullPrototype: true },
  )
  .map(fromPlain);
const someDefaults = fc
  .dictionary(fc.constantFrom(...NAMES, 'other'), scalar, { minKeys: 1, maxKeys: 4, noNullPrototype: true })
  .map((plain) => new Map(Object.entries(plain).map(([name, value]) => [name, fromPlain(value)])));

function open(schema: Plain): Validator | undefined {
  try {
    return openSchema(fromPlain(schema));
  } catch {
    return undefined;
  }
}

/** What a location looks like to whoever refers to it, references followed some levels down: the same digest for the same. */
function createUnfold(index: Validator['index']) {
  const known = new Map<string, string>();
  const unfold = (location: string, levels: number): string => {
    const key = `${levels} ${location}`;
    const found = known.get(key) ?? digest(show(index.at(location), location, levels));
    known.set(key, found);
    return found;
  };
  const show = (schema: unknown, at: string, levels: number): unknown => {
    if (Array.isArray(schema)) return schema.map((item, i) => show(item, `${at}/${i}`, levels));
    if (typeof schema === 'bigint') return Number(schema);
    if (typeof schema !== 'object' || schema === null) return schema;
    const shown = Object.entries(schema).map(([key, value]): [string, unknown] => {
      const target = key === '$ref' ? index.refOf(at) : undefined;
      if (target === undefined) return [key, show(value, `${at}/${key}`, levels)];
      return [key, levels === 0 ? '…' : unfold(target, levels - 1)];
    });
    return Object.fromEntries(shown.filter(([key]) => key !== '$defs' && key !== '$schema').sort());
  };
  return unfold;
}

const digest = (shown: unknown) => createHash('sha256').update(JSON.stringify(shown)).digest('hex');

test('the result is a schema that accepts exactly what the schema accepted', () => {
  let tried = 0;
  fc.assert(
    fc.property(
      someSchema,
      someDefaults,
      fc.array(instance, { minLength: 12, maxLength: 12 }),
      (some, saved, all) => {
        const before = open(some.schema);
        fc.pre(before !== undefined);
        tried += 1;
        const { schema, applied, leftOut } = putDefaults(before, saved);
        const after = openSchema(schema);
        assert.deepEqual([...applied, ...leftOut.map(({ name }) => name)].sort(), [...saved.keys()].sort());
        for (const one of all)
          assert.equal(after.fits('', one), before.fits('', one), JSON.stringify(toPlain(one)));
        for (const name of applied) assert.ok(hasAnySite(after, '', name));
      },
    ),
    { numRuns: 100 },
  );
  assert.ok(tried >= 100);
});

test('what is referred to looks to all others as it did, and nothing is changed in place of the caller', () => {
  fc.assert(
    fc.property(someSchema, someDefaults, ({ schema: plain }, saved) => {
      const before = open(plain);
      fc.pre(before !== undefined);
      const text = JSON.stringify(toPlain(before.index.at('') ?? null));
      const after = indexSchema(putDefaults(before, saved).schema);
      assert.equal(JSON.stringify(toPlain(before.index.at('') ?? null)), text);
      const targets = (index: Validator['index']) => {
        const unfold = createUnfold(index);
        const all = index.locations.flatMap((one) => index.refOf(one) ?? []);
        return all.map((target) => unfold(target, 3));
      };
      const [was, is] = [new Set(targets(before.index)), new Set(targets(after))];
      for (const one of is) assert.ok(was.has(one), `a target that was not there: ${one}`);
    }),
    { numRuns: 150 },
  );
});
