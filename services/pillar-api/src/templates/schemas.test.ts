import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { createSchemas } from './schemas.ts';

const slow = { type: 'string', pattern: '^(a+)+$' };
const long = `${'a'.repeat(60)}!`;
const late = { code: 'unprocessable', message: /the pattern "\^\(a\+\)\+\$" takes longer/u };

test('a pattern that would take for ever is ended, and the next questions are answered', async () => {
  await using schemas = createSchemas({ waitLimitMs: 60_000 });
  const schema = fromPlain({ properties: { x: slow } });
  const stuck = schemas.faultsOf('one', schema, fromPlain({ x: long }));
  const behind = schemas.faultsOf('one', schema, fromPlain({ x: 'aa' }));
  const wrong = schemas.check('one', fromPlain({ type: 'int' }));
  const refused = { code: 'unprocessable', field: 'schema' };
  await Promise.all([assert.rejects(stuck, late), assert.rejects(wrong, refused)]);
  assert.deepEqual(await behind, []);
  await assert.rejects(schemas.putDefaults('one', schema, new Map([['x', long]])), late);
  const { applied } = await schemas.putDefaults('one', schema, new Map([['x', 'a']]));
  assert.deepEqual(applied, ['x']);
});

test('a question that took too long is refused from then on, and another of the same schema is not', async () => {
  await using schemas = createSchemas({ waitLimitMs: 8000 });
  const schema = fromPlain({ properties: { x: slow } });
  const ask = (value: string) => schemas.putDefaults('one', schema, new Map([['x', value]]));
  const first = ask(long);
  const others = Array.from({ length: 8 }, () => ask(long));
  const order: string[] = [];
  void first.catch(() => order.push('first'));
  // In the queue behind all of them: run each, they would take longer than it may wait.
  const good = ask('aa').then(() => order.push('good'));
  await Promise.all([first, ...others].map((one) => assert.rejects(one, late)));
  await good;
  assert.deepEqual(order, ['first', 'good']);
  await assert.rejects(ask(long), late);
});

test('callers take turns: who asks for what takes long costs another one turn', async () => {
  await using schemas = createSchemas({ waitLimitMs: 60_000 });
  const schema = fromPlain({ properties: { x: slow } });
  const order: string[] = [];
  const bad = Array.from({ length: 4 }, (_, n) =>
    schemas
      .faultsOf('mallory', schema, fromPlain({ x: `${long}${n}` }))
      .catch(() => order.push(`mallory ${n}`)),
  );
  const good = schemas.check('alice', true).then(() => order.push('alice'));
  await Promise.all([...bad, good]);
  assert.deepEqual(order, ['mallory 0', 'alice', 'mallory 1', 'mallory 2', 'mallory 3']);
});

test('more questions than can wait are refused at once, of one caller fewer', async () => {
  await using schemas = createSchemas({ waitLimitMs: 60_000 });
  const schema = fromPlain({ pattern: '^(a+)+$' });
  const first = assert.rejects(schemas.faultsOf('one', schema, long), { code: 'unprocessable' });
  const rest = Array.from({ length: 64 }, (_, n) => schemas.check(`caller ${n >> 4}`, true));
  await assert.rejects(schemas.check('caller 9', true), {
    code: 'overloaded',
    message: /^too many schemas/u,
  });
  await first;
  await Promise.all(rest);
  const again = assert.rejects(schemas.faultsOf('one', schema, `${long}!`), { code: 'unprocessable' });
  const ofOne = Array.from({ length: 16 }, () => schemas.check('one', true));
  await assert.rejects(schemas.check('one', true), { code: 'overloaded', message: /of your schemas/u });
  await schemas.check('two', true);
  await again;
  await Promise.all(ofOne);
});

test('whoever waits too long is told to come again', async () => {
  await using schemas = createSchemas({ timeLimitMs: 2000, waitLimitMs: 200 });
  const stuck = assert.rejects(schemas.faultsOf('one', fromPlain(slow), long), late);
  await assert.rejects(schemas.check('two', true), { code: 'overloaded', message: /within 200 ms/u });
  await stuck;
});
