import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, decode, ERROR_CODES, LIMITS, zBridgeReply } from '@colonnade/contracts';
import { canonicalText, valuesEqual } from '@colonnade/value';
import { errorText, successText, toBridgeError } from './reply.ts';

test('a good reply is one of the schema, and keeps every kind of value', () => {
  const pillar = { a: 1n, b: 1.0, c: -(2n ** 63n), d: [null, true, '\u2028"\\'], e: { $enc: 'x' } };
  const reply = decode(zBridgeReply, successText('1-2', { clock: 7, pillar }));
  assert.ok(reply.ok);
  assert.equal(reply.clock, 7);
  assert.ok(valuesEqual(reply.pillar, pillar));
});

test('a reply has the canonical text of its pillar, whatever its names are and however often its values were in one', () => {
  const shared = { b: 1.0, a: [1n] };
  for (const names of [['b', 'a', 'B', 'é', '10', '9', '__proto__'], ['\uff00', '\u{1f600}', 'a"\\'], []]) {
    const pillar = Object.fromEntries(names.map((name, i) => [name, i % 2 === 0 ? shared : `${i}`]));
    for (const _ of ['first', 'again']) {
      const text = successText('1-2', { clock: 7, pillar });
      assert.equal(text, canonicalText({ v: 1n, id: '1-2', ok: true, clock: 7n, pillar }));
    }
  }
});

test('a reply over the limit is too_large, counted in bytes', () => {
  const fits = 'x'.repeat(LIMITS.bridgeReplyBytes - 100);
  assert.ok(successText('1-2', { clock: 7, pillar: { a: fits } }).length > fits.length);
  const isTooLarge = (thrown: unknown) => thrown instanceof ColonnadeError && thrown.code === 'too_large';
  assert.throws(
    () => successText('1-2', { clock: 7, pillar: { a: `${fits}${'x'.repeat(100)}` } }),
    isTooLarge,
  );
  const wide = '💥'.repeat(LIMITS.bridgeReplyBytes / 4);
  assert.throws(() => successText('1-2', { clock: 7, pillar: { a: wide } }), isTooLarge);
});

test('every code has its code on the bridge; an unknown fault tells nothing', () => {
  for (const code of ERROR_CODES) {
    const reply = decode(zBridgeReply, errorText('1-2', new ColonnadeError(code, 'x'.repeat(3000))));
    assert.equal(reply.ok, false);
  }
  assert.deepEqual(toBridgeError(new ColonnadeError('conflict', 'secret details')), {
    code: 'internal',
    message: 'an unexpected fault',
  });
});
