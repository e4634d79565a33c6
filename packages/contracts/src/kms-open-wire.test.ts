import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Value, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { decode, encode } from './codec.ts';
import { kmsOpenForMerger } from './kms.ts';
import { openForMergerWire as wire } from './kms-open-wire.ts';

const enc = { $enc: { v: 1n, ct_b64: 'AA==', alg: 'A256GCM' } };
const context = { tgt_type: 'minion', tgt_id: 'a', pillarenv: 'minion_id:a;master:m1', name: 'p' } as const;
const request = { token: 't', master: 'm1', minion_id: 'web-1', items: [{ context, enc }] };
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
const value: fc.Arbitrary<Value> = fc.oneof(
  ...[fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.boolean(), fc.constant(null), text],
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.array(text),
  fc.dictionary(text, text),
);
const item = fc.record({
  context: fc.record({
    tgt_type: fc.constantFrom('root', 'collection', 'minion', 'task', 'task_tpl'),
    tgt_id: text,
    pillarenv: text,
    name: text,
  }),
  enc: value,
});
const anyRequest = fc.record({
  token: text,
  master: fc.constantFrom('m1', 'a.b-c_D'),
  minion_id: fc.constantFrom('web-1', 'ä.example'),
  items: fc.array(item, { minLength: 1, maxLength: 5 }),
});
const result = fc.oneof(
  fc.record({ ok: fc.constant(true as const), result: value }),
  fc.constant({ ok: false as const, error: { code: 'decrypt_failed' as const, message: 'no "x"' } }),
);

describe('the body of an open, by hand', () => {
  test('is written as the schema writes it, and read as the schema reads it', () => {
    fc.assert(
      fc.property(anyRequest, fc.array(result, { maxLength: 5 }), (asked, items) => {
        const bytes = Buffer.from(encode(kmsOpenForMerger.request, asked));
        for (const _ of ['first', 'with its texts at hand']) {
          assert.deepEqual(Buffer.from(wire.writeRequest(asked)), bytes);
        }
        const read = wire.readRequest(bytes) as Value | undefined;
        assert.ok(read !== undefined && valuesEqual(read, decode(kmsOpenForMerger.request, bytes) as Value));
        const answer = Buffer.from(encode(kmsOpenForMerger.response, { items }));
        assert.deepEqual(Buffer.from(wire.writeResponse({ items })), answer);
        const opened = wire.readResponse(answer) as Value | undefined;
        assert.equal(
          opened !== undefined,
          items.every(({ ok }) => ok),
        );
        if (opened !== undefined)
          assert.ok(valuesEqual(opened, decode(kmsOpenForMerger.response, answer) as Value));
      }),
    );
  });

  const wrong: [what: string, change: object][] = [
    ['an unknown field', { more: 1 }],
    ['no token', { token: undefined }],
    ['an empty token', { token: '' }],
    ['a token too long', { token: 'x'.repeat(8193) }],
    ['a token that is no text', { token: 7 }],
    ['a master that is none', { master: 'a:b' }],
    ['a minion that is none', { minion_id: 'a/b' }],
    ['no items', { items: [] }],
    ['items that are no list', { items: { length: 1 } }],
    ['too many items', { items: Array(501).fill({ context, enc: 1 }) }],
    ['an item that is none', { items: [null] }],
    ['an item with an unknown field', { items: [{ context, enc: 1, more: 1 }] }],
    ['an item without its value', { items: [{ context, more: 1 }] }],
    ['a context that is none', { items: [{ context: [1, 2, 3, 4], enc: 1 }] }],
    ['a context with an unknown field', { items: [{ context: { ...context, more: 1 }, enc: 1 }] }],
    ['an unknown target', { items: [{ context: { ...context, tgt_type: 'toString' }, enc: 1 }] }],
    ['a scope too long', { items: [{ context: { ...context, pillarenv: 'x'.repeat(1025) }, enc: 1 }] }],
    ['no name', { items: [{ context: { ...context, name: '' }, enc: 1 }] }],
  ];
  for (const [what, change] of wrong) {
    test(`with ${what} is left to the schema, which refuses it`, () => {
      const bytes = Buffer.from(JSON.stringify({ ...request, items: [{ context, enc: 1 }], ...change }));
      assert.equal(wire.readRequest(bytes), undefined);
      assert.throws(() => decode(kmsOpenForMerger.request, bytes), { code: 'bad_request' });
    });
  }

  for (const answer of [
    '{}',
    '[]',
    '{"items":{}}',
    '{"items":[{"ok":true}]}',
    '{"items":[{"ok":1,"result":1}]}',
  ]) {
    test(`an answer ${answer} is left to the schema, which refuses it`, () => {
      assert.equal(wire.readResponse(Buffer.from(answer)), undefined);
      assert.throws(() => decode(kmsOpenForMerger.response, answer), { code: 'bad_request' });
    });
  }
});
