import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { fromPlain, parseValue, toPlain } from '@colonnade/value';
import { openSchema } from './validator.ts';
import { putDefaults } from './with-defaults.ts';

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

function put(schema: unknown, defaults: Record<string, unknown>) {
  const saved = new Map(Object.entries(defaults).map(([name, value]) => [name, fromPlain(value)]));
  const result = putDefaults(openSchema(fromPlain(schema)), saved);
  openSchema(result.schema);
  return { ...result, schema: toPlain(result.schema) };
}

function refusal(schema: unknown): string {
  try {
    openSchema(fromPlain(schema));
  } catch (thrown) {
    assert.ok(thrown instanceof ColonnadeError && thrown.code === 'unprocessable', String(thrown));
    return thrown.message;
  }
  return 'taken';
}

const port = { type: 'integer', minimum: 1 };
const node = {
  type: 'object',
  properties: { port, child: { $ref: '#/$defs/node' } },
  additionalProperties: false,
};

describe('with-defaults', () => {
  test('a default stands at its property; what it replaces is gone, the rest is as it was', () => {
    const schema = {
      type: 'object',
      properties: { port: { ...port, default: 1 }, on: true },
      required: ['on'],
    };
    const { schema: out, applied, leftOut } = put(schema, { port: 80, on: false });
    const properties = { port: { ...port, default: 80 }, on: { default: false } };
    assert.deepEqual(out, { ...schema, properties });
    assert.deepEqual([applied, leftOut], [['port', 'on'], []]);
    assert.deepEqual(put(schema, {}).schema, schema);
  });

  test('integers, floats and big integers go in as they are', () => {
    const text = '{"properties":{"a":{"maximum":1.5},"b":{"multipleOf":1.0}}}';
    const saved = new Map([
      ['a', parseValue('1.0')],
      ['b', parseValue('9007199254740993')],
    ]);
    const { schema } = putDefaults(openSchema(parseValue(text)), saved);
    const wanted =
      '{"properties":{"a":{"default":1.0,"maximum":1.5},"b":{"default":9007199254740993,"multipleOf":1.0}}}';
    assert.deepEqual(schema, parseValue(wanted));
  });

  test('a default that breaks its property, or has none, is told and not put in', () => {
    const schema = {
      properties: { port, name: false, kind: { enum: ['a'] }, x: { type: 'string', pattern: '^a+$' } },
      patternProperties: { '^x': { maxLength: 2 } },
      propertyNames: { maxLength: 4 },
    };
    const {
      schema: out,
      applied,
      leftOut,
    } = put(schema, { port: 0, name: 1, kind: 'b', x: 'aaa', other: 1 });
    assert.deepEqual(out, schema);
    assert.deepEqual(applied, []);
    assert.deepEqual(leftOut, [
      ...['port', 'name', 'kind', 'x'].map((name) => ({ name, reason: 'breaks_schema' })),
      { name: 'other', reason: 'no_property' },
    ]);
    assert.deepEqual(
      put({ ...schema, allOf: [{ properties: { port: { minimum: 90 } } }] }, { port: 80 }).applied,
      [],
    );
    const closed = { properties: { port }, allOf: [{ additionalProperties: false }] };
    assert.equal(put(closed, { port: 80 }).leftOut[0]?.reason, 'breaks_schema');
  });

  test('defaults of one branch never stand in another', () => {
    const branch = (kind: string) => ({ properties: { kind: { const: kind }, port }, required: ['kind'] });
    for (const keyword of ['oneOf', 'anyOf']) {
      const schema = { [keyword]: [branch('a'), branch('b')] };
      const { schema: out, applied } = put(schema, { kind: 'b', port: 80 });
      const chosen = {
        ...branch('b'),
        properties: { kind: { const: 'b', default: 'b' }, port: { ...port, default: 80 } },
      };
      assert.deepEqual(out, { [keyword]: [branch('a'), chosen] });
      assert.deepEqual(applied, ['kind', 'port']);
      const torn = put(
        {
          [keyword]: [
            { properties: { x: {} }, additionalProperties: false },
            { properties: { y: {} }, additionalProperties: false },
          ],
        },
        { x: 1, y: 2 },
      );
      assert.deepEqual(torn.applied, []);
      assert.deepEqual(
        torn.leftOut.map(({ reason }) => reason),
        ['other_branch', 'other_branch'],
      );
    }
  });

  test('a property beside the branches gets its default there, and decides between them', () => {
    const of = (kind: string) => ({ properties: { kind: { const: kind }, port } });
    const schema = { properties: { kind: { type: 'string' } }, oneOf: [of('a'), of('b')] };
    const { schema: out } = put(schema, { kind: 'a', port: 80 });
    assert.deepEqual(out, {
      properties: { kind: { type: 'string', default: 'a' } },
      oneOf: [{ properties: { kind: { const: 'a' }, port: { ...port, default: 80 } } }, of('b')],
    });
  });

  test('then and else: as the condition can still come out; the condition itself stays', () => {
    const schema = {
      properties: { kind: { type: 'string' } },
      if: { properties: { kind: { const: 'a' } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { port } },
      else: { properties: { path: { type: 'string' }, port: { maximum: 9 } } },
    };
    const a = put(schema, { kind: 'a', port: 80 }).schema as Record<string, unknown>;
    assert.deepEqual(a.then, { properties: { port: { ...port, default: 80 } } });
    assert.deepEqual([a.if, a.else], [schema.if, schema.else]);
    const b = put(schema, { kind: 'b', port: 5, path: '/' });
    const out = b.schema as typeof schema;
    assert.deepEqual([out.if, out.then], [schema.if, schema.then]);
    assert.deepEqual(out.else.properties, {
      path: { type: 'string', default: '/' },
      port: { maximum: 9, default: 5 },
    });
    assert.deepEqual(put(schema, { kind: 'a', path: '/' }).leftOut, [
      { name: 'path', reason: 'other_branch' },
    ]);
  });

  test('behind a reference the default stands beside it, and nobody else who refers there sees it', () => {
    const schema = { $ref: '#/$defs/node', $defs: { node } };
    const { schema: out, applied } = put(schema, { port: 80 });
    assert.deepEqual(applied, ['port']);
    assert.deepEqual(out, { ...schema, allOf: [{ properties: { port: { default: 80 } } }] });
    const old = { $schema: DRAFT_07, $ref: '#/definitions/a', definitions: { a: { properties: { port } } } };
    assert.deepEqual(put(old, { port: 80 }).schema, {
      $schema: DRAFT_07,
      definitions: old.definitions,
      allOf: [{ $ref: '#/definitions/a' }, { properties: { port: { default: 80 } } }],
    });
  });

  test('a schema that contains itself: only the outermost instance gets the default', () => {
    const schema = {
      $id: 'urn:x',
      title: 't',
      properties: { port, child: { $ref: '#' }, first: { $ref: '#/properties/port' } },
    };
    const { schema: out } = put(schema, { port: 80, first: 7 });
    assert.deepEqual(out, {
      $id: 'urn:x',
      title: 't',
      allOf: [
        { properties: { port, child: { $ref: '#/allOf/0' }, first: { $ref: '#/allOf/0/properties/port' } } },
        { properties: { port: { default: 80 }, first: { default: 7 } } },
      ],
    });
    const shared = { properties: { port, other: { $ref: '#/properties/port' } } };
    assert.deepEqual(put(shared, { port: 80 }).schema, {
      ...shared,
      allOf: [{ properties: { port: { default: 80 } } }],
    });
  });

  test('a property that is a reference keeps it; what it leads to stays', () => {
    const schema = { properties: { a: { $ref: '#/$defs/p' }, b: { $ref: '#/$defs/p' } }, $defs: { p: port } };
    const { schema: out } = put(schema, { a: 80 });
    const a = { $ref: '#/$defs/p', default: 80 };
    assert.deepEqual(out, { ...schema, properties: { ...schema.properties, a } });
    const old = { $schema: DRAFT_07, properties: schema.properties, $defs: { p: port } };
    const wrapped = { allOf: [{ $ref: '#/$defs/p' }], default: 80 };
    assert.deepEqual(put(old, { a: 80 }).schema, { ...old, properties: { ...old.properties, a: wrapped } });
  });

  test('branches behind a reference are copied, and the original stays for its other users', () => {
    const either = {
      $anchor: 'either',
      oneOf: [{ properties: { port } }, { properties: { path: { type: 'string' } } }],
    };
    const schema = { $ref: '#either', properties: { twin: { $ref: '#/$defs/either' } }, $defs: { either } };
    const { schema: out } = put(schema, { port: 80 });
    const [first, second] = either.oneOf;
    const copy = { oneOf: [{ properties: { port: { ...port, default: 80 } } }, second] };
    assert.ok(first);
    assert.deepEqual(out, { properties: schema.properties, $defs: { either }, allOf: [copy] });
  });
});

describe('a schema of a template', () => {
  test('is one of draft 2020-12 or draft-07', () => {
    assert.equal(refusal({ type: 'object' }), 'taken');
    assert.equal(refusal(true), 'taken');
    assert.equal(refusal({ $schema: 'https://json-schema.org/draft/2020-12/schema' }), 'taken');
    assert.equal(refusal({ $schema: DRAFT_07, items: [{ type: 'string' }] }), 'taken');
    assert.match(refusal({ items: [{ type: 'string' }] }), /\/items: must be object,boolean/u);
    assert.match(refusal({ $schema: 'http://json-schema.org/draft-04/schema#' }), /\$schema: must name/u);
    assert.match(refusal({ type: 'int' }), /schema at \/type: must be equal to one of/u);
    assert.match(
      refusal({ properties: { a: { minimum: 'x' } } }),
      /\/properties\/a\/minimum: must be number/u,
    );
    assert.match(refusal({ properties: { a: 1 } }), /schema at \/properties\/a: must be an object/u);
    assert.match(refusal(5), /must be an object/u);
  });

  test('is closed: it refers to schemas within itself, and comes to an end', () => {
    assert.match(refusal({ $ref: 'http://127.0.0.1:1/x' }), /must begin with "#"/u);
    assert.match(refusal({ $ref: '#/$defs/a' }), /leads to no schema/u);
    assert.match(refusal({ $ref: '#/enum/0', enum: [{ type: 'int' }] }), /leads to no schema/u);
    assert.match(refusal({ $ref: '#/%zz' }), /percent-encoding/u);
    assert.match(refusal({ $ref: '#' }), /comes back to itself/u);
    const loop = { anyOf: [{ $ref: '#/$defs/a' }], $defs: { a: { not: { allOf: [{ $ref: '#' }] } } } };
    assert.match(refusal(loop), /comes back to itself/u);
    assert.equal(refusal({ $ref: '#/$defs/node', $defs: { node } }), 'taken');
    for (const key of ['$dynamicRef', '$async']) assert.match(refusal({ [key]: '#' }), /not supported/u);
    assert.match(refusal({ properties: { a: { $id: 'urn:y' } } }), /only at the top/u);
    const beside = { $schema: DRAFT_07, $ref: '#/definitions/a', definitions: { a: true }, type: 'string' };
    assert.match(refusal(beside), /schema at \/type: draft-07 ignores/u);
  });

  test('is bounded, and its patterns are patterns', () => {
    let deep: unknown = true;
    for (let i = 0; i < 40; i++) deep = { not: deep };
    assert.match(refusal(deep), /more than 32 levels/u);
    const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`p${i}`, true]));
    assert.match(refusal({ properties: many }), /more than 2000 schemas/u);
    assert.match(refusal({ description: 'x'.repeat(200_000) }), /more than 131072/u);
    assert.match(refusal({ pattern: '(' }), /schema/u);
  });

  test('an instance is told what is wrong with it, and none of its values', () => {
    const { faultsOf } = openSchema(fromPlain({ properties: { port, s: { const: 1 } }, required: ['z'] }));
    const faults = faultsOf(fromPlain({ port: 0, s: 'hidden' }));
    assert.deepEqual(faults.map(({ path }) => path).sort(), ['', '/port', '/s']);
    assert.ok(!JSON.stringify(faults).includes('hidden'));
    assert.deepEqual(faultsOf(fromPlain({ z: 1, constructor: 1 })), []);
    const strange = openSchema(fromPlain({ required: ['constructor'] }));
    assert.equal(strange.faultsOf(fromPlain({})).length, 1, 'what a prototype has is no property');
  });
});
