import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from './limits.ts';

const ENC_OVERHEAD = 1024;
const RECORD_OVERHEAD = 64 * 1024;

/** Bytes of a value once it is sealed: base64 of ciphertext and tag, and the other fields of `$enc`. */
const sealed = Math.ceil((LIMITS.valueBytes + 16) / 3) * 4 + ENC_OVERHEAD;

test('a value, plain or sealed, fits the body of a request', () => {
  assert.ok(sealed + RECORD_OVERHEAD <= LIMITS.httpBodyBytes);
});

test('an audit record with request and response bodies fits one NATS message', () => {
  assert.ok(2 * LIMITS.httpBodyBytes + RECORD_OVERHEAD <= LIMITS.natsPayloadBytes);
});

test('a dead letter, as base64, and an event handed in fit one NATS message', () => {
  assert.ok(Math.ceil(LIMITS.auditDeadPayloadBytes / 3) * 4 + RECORD_OVERHEAD <= LIMITS.natsPayloadBytes);
  assert.ok(LIMITS.auditIngestEventBytes + ENC_OVERHEAD <= LIMITS.natsPayloadBytes);
});

test('one sealed value fits a KMS batch, and a batch fits one NATS message', () => {
  assert.ok(sealed + ENC_OVERHEAD <= LIMITS.kmsBatchBytes);
  assert.ok(LIMITS.kmsBatchBytes + RECORD_OVERHEAD <= LIMITS.natsPayloadBytes);
});

test('a value may stand a few levels below the top of a message', () => {
  assert.ok(LIMITS.valueDepth + 8 <= LIMITS.messageDepth);
});

test('the longest pillarenv and a token fit one bridge request', () => {
  assert.ok(LIMITS.pillarenvBytes * 2 + 4096 <= LIMITS.bridgeRequestBytes);
});
