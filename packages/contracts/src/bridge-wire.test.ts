import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Value, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { BRIDGE_EVENT, zBridgeReply, zBridgeRequest } from './bridge.ts';
import { readBridgeReply, readBridgeRequest, writeBridgeRequest } from './bridge-wire.ts';
import { decode, encodeText } from './codec.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
const request = fc
  .record(
    {
      v: fc.constant(1 as const),
      event: fc.constant(BRIDGE_EVENT),
      master: fc.constantFrom('m1', 'a.b-c_D'),
      minion_id: fc.constantFrom('web-1', 'ä"\\.example'),
      pillarenv: fc.constantFrom('auto', 'base,prod'),
      token: text,
      ttl_ms: fc.integer({ min: 100, max: 20_000 }),
      traceparent: text,
    },
    { requiredKeys: ['v', 'event', 'master', 'minion_id', 'pillarenv', 'token', 'ttl_ms'] },
  )
  .filter(({ minion_id }) => !minion_id.includes('\\'));
const plain = {
  ...{ v: 1, event: BRIDGE_EVENT, master: 'm1', minion_id: 'web-1', pillarenv: 'auto', token: 't' },
  ttl_ms: 1000,
};

describe('the messages of the bridge, by hand', () => {
  test('a request is written as the schema writes it, and read as the schema reads it', () => {
    fc.assert(
      fc.property(request, (asked) => {
        const written = writeBridgeRequest(asked);
        assert.equal(written, encodeText(zBridgeRequest, asked));
        const bytes = Buffer.from(written);
        assert.deepEqual({ ...readBridgeRequest(bytes) }, { ...decode(zBridgeRequest, bytes) });
      }),
    );
  });

  const wrong: object[] = [
    ...[{ v: 2 }, { v: 1.5 }, { event: 'other' }, { master: 'a:b' }, { minion_id: 'a/b' }, { token: '' }],
    ...[{ token: 7 }, { ttl_ms: 99 }, { ttl_ms: 0.5 }, { ttl_ms: '1000' }, { ttl_ms: 2 ** 60 }],
    ...[{ traceparent: 'x'.repeat(65) }, { traceparent: 1 }, { more: 1 }, { token: undefined }],
    ...[
      { token: undefined, more: 1 },
      { pillarenv: 'a\nb' },
      { pillarenv: 'x'.repeat(4097) },
      { pillarenv: '' },
    ],
  ];
  for (const change of wrong) {
    test(`a request with ${JSON.stringify(change).slice(0, 40)} is refused as the schema refuses it`, () => {
      const bytes = Buffer.from(JSON.stringify({ ...plain, ...change }));
      const refusal = (work: () => unknown) => {
        try {
          return work();
        } catch (error) {
          return (error as Error).message;
        }
      };
      const expected = refusal(() => decode(zBridgeRequest, bytes));
      assert.equal(typeof expected, 'string');
      assert.equal(
        refusal(() => readBridgeRequest(bytes)),
        expected,
      );
    });
  }

  const replies = [
    '{"clock":7,"id":"1-2","ok":true,"pillar":{"a":1,"b":1.0},"v":1}',
    '{"clock":7,"id":"1-2","ok":true,"pillar":null,"v":1}',
    '{"error":{"code":"expired","message":"x"},"id":"1-2","ok":false,"v":1}',
  ];
  for (const reply of replies) {
    test(`${reply} is read as the schema reads it`, () => {
      const [read, expected] = [readBridgeReply(reply), decode(zBridgeReply, reply)];
      assert.equal(read.ok, expected.ok);
      if (read.ok && expected.ok) {
        assert.deepEqual([read.v, read.id, read.clock], [expected.v, expected.id, expected.clock]);
        assert.ok(valuesEqual(read.pillar, expected.pillar as Value));
      } else assert.deepEqual({ ...read }, { ...expected });
    });
  }

  for (const reply of [
    '{"clock":7,"id":"1-2","ok":true,"v":1}',
    '{"clock":7,"id":"1-2","ok":true,"pillar":1,"v":1,"more":1}',
    '{"clock":7.5,"id":"1-2","ok":true,"pillar":1,"v":1}',
    '{"clock":7,"id":1,"ok":true,"pillar":1,"v":1}',
    '{"clock":7,"id":"1-2","ok":true,"pillar":1,"v":2}',
    '[]',
  ]) {
    test(`${reply} is refused`, () => {
      assert.throws(() => readBridgeReply(reply), { code: 'bad_request' });
    });
  }
});
