import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { createSchemas } from './schemas.ts';

const slow = { type: 'string', pattern: '^(a+)+$' };
const long = `${'a'.repeat(60)}!`;

test('a pattern that would take for ever is ended, and the next questions are answered', async () => {
  await using schemas = createSchemas({ timeLimitMs: 1000 });
  const schema = fromPlain({ properties: { x: slow } });
  const stuck = schemas.faultsOf(schema, fromPlain({ x: long }));
  const behind = schemas.faultsOf(schema, fromPlain({ x: 'aa' }));
  const wrong = schemas.check(fromPlain({ type: 'int' }));
  const late = { code: 'unprocessable', message: /takes longer/u };
  const refused = { code: 'unprocessable', field: 'schema' };
  await Promise.all([assert.rejects(stuck, late), assert.rejects(wrong, refused)]);
  assert.deepEqual(await behind, []);
  await assert.rejects(schemas.putDefaults(schema, new Map([['x', long]])), { message: /takes longer/u });
  const { applied } = await schemas.putDefaults(schema, new Map([['x', 'a']]));
  assert.deepEqual(applied, ['x']);
});

test('more questions than can wait are refused at once', async () => {
  await using schemas = createSchemas({ timeLimitMs: 1000 });
  const schema = fromPlain({ pattern: '^(a+)+$' });
  const first = schemas.faultsOf(schema, long);
  const rest = Array.from({ length: 64 }, () => schemas.check(true));
  await assert.rejects(schemas.check(true), { code: 'overloaded' });
  await assert.rejects(first, { code: 'unprocessable' });
  await Promise.all(rest);
});
