import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import {
  Int32,
  MongoInvalidArgumentError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { brokenKey, isConflict, isWorthRetrying, outdated, toMongoStoreError } from './errors.ts';

const server = (code: number, more: object = {}) =>
  new MongoServerError({ message: 'E11000 dup key: { name: "a secret name" }', code, ...more });

test('whatever is thrown becomes an error of ours', () => {
  const cases: readonly (readonly [unknown, ErrorCode])[] = [
    [server(112), 'unavailable'],
    [server(50), 'unavailable'],
    [server(10107), 'unavailable'],
    [server(99999, { errorLabels: ['TransientTransactionError'] }), 'unavailable'],
    [server(11000), 'already_exists'],
    [server(10334), 'too_large'],
    [server(13), 'misconfigured'],
    [server(18), 'misconfigured'],
    [server(2), 'internal'],
    [new MongoNetworkError('connection closed'), 'unavailable'],
    [new MongoServerSelectionError('nobody there', {} as never), 'unavailable'],
    [new MongoInvalidArgumentError('x'), 'internal'],
    [Object.assign(new Error('x'), { code: 'ENOENT' }), 'misconfigured'],
    [Object.assign(new Error('x'), { code: 'ERR_OSSL_PEM_NO_START_LINE' }), 'misconfigured'],
    [Object.assign(new Error('x'), { code: 'ECONNRESET' }), 'unavailable'],
    [Object.assign(new Error('x'), { code: 'EPIPE' }), 'unavailable'],
    [Object.assign(new TypeError('x'), { code: 'ERR_INVALID_ARG_TYPE' }), 'internal'],
    [new TypeError('x'), 'internal'],
    ['a string', 'internal'],
    [undefined, 'internal'],
    [new ColonnadeError('conflict', 'x'), 'conflict'],
  ];
  for (const [thrown, code] of cases) assert.equal(toMongoStoreError(thrown).code, code, String(thrown));
});

test('neither message nor cause repeats what the server wrote about a document', () => {
  const error = toMongoStoreError(server(11000, { keyValue: { name: 'a secret name' } }));
  assert.doesNotMatch(`${error.message} ${String(error.cause)} ${JSON.stringify(error.cause)}`, /secret/u);
});

test('what is tried again is told from what is not', () => {
  const transient = { errorLabels: ['TransientTransactionError'] };
  for (const thrown of [server(112, transient), outdated()]) assert.ok(isWorthRetrying(thrown));
  for (const thrown of [server(11000), new ColonnadeError('unavailable', 'x'), undefined]) {
    assert.ok(!isWorthRetrying(thrown));
  }
  assert.ok(isConflict(server(112)) && !isConflict(server(11000)));
});

test('a broken key tells its index', () => {
  const keyPattern = { pid: 1 };
  assert.deepEqual(brokenKey(server(11000, { keyPattern })), ['pid']);
  assert.deepEqual(brokenKey(new MongoServerError({ code: new Int32(11000), keyPattern })), ['pid']);
  assert.equal(brokenKey(server(112)), undefined);
});
