import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { packError, toStoreError, unpackError } from './errors.ts';

const sqlite = (errcode: number) =>
  Object.assign(new Error('said by SQLite'), { code: 'ERR_SQLITE_ERROR', errcode });

test('whatever is thrown becomes an error of ours', () => {
  const cases: readonly (readonly [unknown, ErrorCode])[] = [
    [sqlite(5), 'unavailable'],
    [sqlite(261), 'unavailable'],
    [sqlite(13), 'unavailable'],
    [sqlite(11), 'unavailable'],
    [sqlite(778), 'unavailable'],
    [sqlite(2067), 'already_exists'],
    [sqlite(1555), 'already_exists'],
    [sqlite(787), 'internal'],
    [sqlite(1), 'internal'],
    [Object.assign(new Error('x'), { code: 'ENOSPC' }), 'unavailable'],
    [Object.assign(new Error('x'), { code: 'ERR_INVALID_STATE' }), 'unavailable'],
    [Object.assign(new Error('x'), { code: 'ERR_INVALID_ARG_TYPE' }), 'internal'],
    [new TypeError('x'), 'internal'],
    ['a string', 'internal'],
    [undefined, 'internal'],
    [null, 'internal'],
    [new ColonnadeError('conflict', 'x'), 'conflict'],
  ];
  for (const [thrown, code] of cases) assert.equal(toStoreError(thrown).code, code, String(thrown));
});

test('an error keeps its code, field and cause on its way between threads', () => {
  const sent = structuredClone(packError(new ColonnadeError('conflict', 'why', { field: 'parentId' })));
  const { code, message, field, cause } = unpackError(sent);
  assert.deepEqual(
    { code, message, field, cause },
    { code: 'conflict', message: 'why', field: 'parentId', cause: undefined },
  );
  const fault = unpackError(structuredClone(packError(sqlite(13))));
  assert.equal(fault.code, 'unavailable');
  assert.equal((fault.cause as Error).message, 'said by SQLite');
});
