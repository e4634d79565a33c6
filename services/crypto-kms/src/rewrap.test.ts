import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type ColonnadeError, encodeTree, zEnc } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { type Kek, type Keys, openValue, rewrapDek, sealValue } from './envelope.ts';

const keks: Kek[] = ['k1', 'k2'].map((kid) => ({ kid, key: createSecretKey(randomBytes(32)) }));
const keysOf = (active: number, known = keks): Keys => ({
  active: () => keks[active] as Kek,
  find: (kid) => known.find((kek) => kek.kid === kid),
  prepare: async () => {},
});
const AAD = 'root:root:base:db';
const PLAIN = fromPlain({ password: 's3cret' });
const codeOf = (act: () => unknown) => {
  try {
    act();
  } catch (thrown) {
    return (thrown as ColonnadeError).code;
  }
  return 'ok';
};

const { $enc } = sealValue(keysOf(0), AAD, PLAIN);
const { kid, dek_wrap_nonce_b64, dek_wrapped_b64 } = $enc;
const wrapping = { kid, dek_wrap_nonce_b64, dek_wrapped_b64 };

test('a value opens under the new key alone, and only its wrapping has changed', () => {
  const rewrapped = { $enc: { ...$enc, ...rewrapDek(keysOf(1), AAD, wrapping) } };
  assert.equal(rewrapped.$enc.kid, 'k2');
  assert.equal(rewrapped.$enc.ct_b64, $enc.ct_b64);
  assert.deepEqual(openValue(keysOf(1, keks.slice(1)), AAD, encodeTree(zEnc, rewrapped)), PLAIN);
  assert.equal(
    codeOf(() => openValue(keysOf(1, keks.slice(1)), AAD, encodeTree(zEnc, { $enc }))),
    'kid_unknown',
  );
  const again = rewrapDek(keysOf(1), AAD, wrapping);
  assert.notEqual(again.dek_wrap_nonce_b64, rewrapped.$enc.dek_wrap_nonce_b64);
});

test('what is under the key that seals stays as it is', () => {
  assert.deepEqual(rewrapDek(keysOf(0), AAD, wrapping), wrapping);
});

test('a wrapping of another place, of no key of ours, or that was changed is refused', () => {
  const flip = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
  for (const [code, changed, aad] of [
    ['decrypt_failed', {}, 'root:root:base:other'],
    ['decrypt_failed', { kid: 'k2' }, AAD],
    ['decrypt_failed', { dek_wrap_nonce_b64: flip(dek_wrap_nonce_b64) }, AAD],
    ['decrypt_failed', { dek_wrapped_b64: flip(dek_wrapped_b64) }, AAD],
    ['kid_unknown', { kid: 'k3' }, AAD],
    ['value_invalid', { dek_wrapped_b64: `${dek_wrapped_b64}AAAA` }, AAD],
    ['value_invalid', { dek_wrap_nonce_b64: ' ' }, AAD],
  ] as const)
    assert.equal(
      codeOf(() => rewrapDek(keysOf(1), aad, { ...wrapping, ...changed })),
      code,
      JSON.stringify(changed),
    );
});
