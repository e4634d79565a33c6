import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
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

test("the data of a service's event fits the variable of a hook, and so does what is around it one message", () => {
  assert.ok(LIMITS.serviceEventBytes <= LIMITS.hookParameterBytes);
  assert.ok(LIMITS.serviceEventDeadBytes <= LIMITS.serviceEventBytes);
});

test('one sealed value fits a KMS batch, and a batch fits one NATS message', () => {
  assert.ok(sealed + ENC_OVERHEAD <= LIMITS.kmsBatchBytes);
  assert.ok(LIMITS.kmsBatchBytes + RECORD_OVERHEAD <= LIMITS.natsPayloadBytes);
});

test('a value may be moved or restored in a batch, and the answer about a batch of them fits', () => {
  assert.ok(LIMITS.valueBytes <= LIMITS.batchBytes);
  assert.ok(LIMITS.batchPillars <= LIMITS.kmsBatchItems);
  assert.ok(LIMITS.batchBytes < LIMITS.kmsBatchBytes);
});

test('a value may stand a few levels below the top of a message', () => {
  assert.ok(LIMITS.valueDepth + 8 <= LIMITS.messageDepth);
});

test('the longest pillarenv and a token fit one bridge request', () => {
  assert.ok(LIMITS.pillarenvBytes * 2 + 4096 <= LIMITS.bridgeRequestBytes);
});

test('a reply and what stands around it fit one argument of Redis, and that one fits the query buffer', () => {
  const MIB = 1024 * 1024;
  assert.ok(LIMITS.bridgeReplyBytes <= LIMITS.redisBulkBytes);
  assert.ok(LIMITS.redisBulkBytes - LIMITS.bridgeReplyBytes <= MIB, 'no more room than needed');
  assert.ok(LIMITS.redisBulkBytes + 64 * 1024 <= LIMITS.redisQueryBufferBytes);
  assert.ok(LIMITS.redisQueryBufferBytes - LIMITS.redisBulkBytes <= MIB, 'no more room than needed');
  assert.ok(
    8 * LIMITS.redisQueryBufferBytes <= LIMITS.redisClientsBytes,
    'several large replies on their way',
  );
});

test('a full queue of the longest requests is no flood', () => {
  // A node of a stream holds at least one entry; its allocation may be a quarter larger than the entry.
  const entry = Math.ceil((LIMITS.bridgeRequestBytes + 256) * 1.25);
  assert.ok(LIMITS.bridgeQueueLength * entry <= LIMITS.bridgeQueueBytes);
});

test('the Redis configuration has these limits', async () => {
  const text = await readFile(new URL('../../../infra/redis/redis.conf', import.meta.url), 'utf8');
  assert.match(text, new RegExp(`^proto-max-bulk-len ${LIMITS.redisBulkBytes}$`, 'mu'));
  assert.match(text, new RegExp(`^client-query-buffer-limit ${LIMITS.redisQueryBufferBytes}$`, 'mu'));
  assert.match(text, new RegExp(`^maxmemory-clients ${LIMITS.redisClientsBytes}$`, 'mu'));
});

test('the largest compiled pillar, or as many as one answer holds, fit one NATS message', () => {
  assert.ok(LIMITS.compileBytes <= LIMITS.compilePillarBytes);
  assert.ok(LIMITS.compilePillarBytes + 2 * RECORD_OVERHEAD <= LIMITS.natsPayloadBytes);
});
