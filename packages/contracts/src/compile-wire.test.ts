import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { decode, encode } from './codec.ts';
import { compileWire } from './compile-wire.ts';
import { mergerCompile } from './merger.ts';

const answer = {
  clock: 7,
  items: [
    { ok: true, result: { pillar: fromPlain({ b: 1, a: ['é😀', null], '"': {} }), secrets: ['b'] } },
    { ok: false, error: { code: 'too_large', message: 'x' } },
  ],
} satisfies Parameters<typeof compileWire.writeResponse>[0];

test('an answer is written as the schema writes it, and read as it reads it', () => {
  const bytes = compileWire.writeResponse(answer);
  assert.deepEqual(Buffer.from(bytes), Buffer.from(encode(mergerCompile.response, answer)));
  const read = compileWire.readResponse(bytes);
  assert.ok(read !== undefined);
  assert.deepEqual(
    encode(mergerCompile.response, read),
    encode(mergerCompile.response, decode(mergerCompile.response, bytes)),
  );
});

test('what is not plainly right is for the schema to say', () => {
  const good = Buffer.from(compileWire.writeResponse(answer)).toString();
  for (const [from, to] of [
    ['"clock":7', '"clock":7.0'],
    ['"clock":7', '"clock":9007199254740993'],
    ['"clock":7', '"clock":7,"more":1'],
    ['"ok":true', '"ok":false'],
    ['"secrets":["b"]', '"secrets":[1]'],
    ['"secrets":["b"]', '"secrets":[],"more":1'],
    ['"too_large"', '"no_such_code"'],
    ['"message":"x"', '"message":1'],
    ['"pillar":', '"pillars":'],
  ] as const) {
    assert.ok(good.includes(from));
    const bytes = Buffer.from(good.replace(from, to));
    assert.equal(compileWire.readResponse(bytes), undefined, to);
    assert.throws(() => decode(mergerCompile.response, bytes), { code: 'bad_request' }, to);
  }
});
