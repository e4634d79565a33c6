import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, ERROR_CODES } from '@colonnade/contracts';
import { parseBody } from './body.ts';
import { fromHttpError } from './foreign-errors.ts';
import { PROBLEMS, toProblem } from './problem.ts';

test('every code has its status, and what may be retried is no fault of the client', () => {
  for (const code of ERROR_CODES) {
    const { status, title } = PROBLEMS[code];
    assert.ok(status >= 400 && status <= 504 && title !== '', code);
    // Kubernetes answers 500 to what could not be put on record, and so do we (seed 001).
    const retryable = code === 'audit_unavailable' ? [500] : [409, 429, 503];
    if (new ColonnadeError(code, '').retryable) assert.ok(retryable.includes(status), code);
  }
});

test('what is not ours is an internal fault without its words; what a client library says is bad_request', () => {
  const internal = toProblem(fromHttpError(new Error('SECRET')), 'id');
  assert.equal(internal.status, 500);
  assert.doesNotMatch(JSON.stringify(internal), /SECRET/u);
  const client = toProblem(fromHttpError(Object.assign(new Error('SECRET'), { statusCode: 418 })), 'id');
  assert.deepEqual([client.status, client.code], [400, 'bad_request']);
  assert.doesNotMatch(JSON.stringify(client), /SECRET/u);
  for (const thrown of [undefined, null, 'text', 7]) assert.equal(fromHttpError(thrown).code, 'internal');
});

test('the place of a fault in the text is told', () => {
  assert.throws(
    () => parseBody(Buffer.from('{"a":1,\n"a":2}')),
    (thrown) => {
      assert.ok(thrown instanceof ColonnadeError);
      const { position, code } = toProblem(thrown, 'id');
      assert.deepEqual([code, position?.line, position?.column], ['bad_request', 2, 1]);
      return true;
    },
  );
});
