import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnswerKeys } from './sealed-answer.ts';

const answer = Buffer.from('{"value":"secret"}');

test('the asking process opens what was sealed for it, nobody else does', () => {
  const [asker, server, thief] = [createAnswerKeys(), createAnswerKeys(), createAnswerKeys()];
  const sealed = server.seal(asker.publicKey, 'subject', answer);
  assert.ok(!Buffer.from(sealed).includes('secret'));
  assert.deepEqual(asker.open(server.publicKey, 'subject', sealed), answer);
  assert.throws(() => thief.open(server.publicKey, 'subject', sealed), { code: 'internal' });
  assert.throws(() => asker.open(server.publicKey, 'another', sealed), { code: 'internal' });
  assert.throws(() => asker.open(thief.publicKey, 'subject', sealed), { code: 'internal' });
  for (let i = 0; i < sealed.length; i += 1) {
    const bent = Uint8Array.from(sealed, (byte, at) => (at === i ? byte ^ 1 : byte));
    assert.throws(() => asker.open(server.publicKey, 'subject', bent), { code: 'internal' }, `byte ${i}`);
  }
  assert.throws(() => asker.open(server.publicKey, 'subject', sealed.subarray(0, 20)), { code: 'internal' });
});

test('a key that is none is refused', () => {
  const server = createAnswerKeys();
  for (const key of [
    '',
    'x',
    'A'.repeat(44),
    `${server.publicKey}=`,
    Buffer.alloc(32).toString('base64url'),
  ]) {
    assert.throws(() => server.seal(key, 'subject', answer), { code: 'bad_request' }, key);
  }
});
