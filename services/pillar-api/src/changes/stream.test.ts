import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { createEventStream } from './stream.ts';

const read = (stream: ReturnType<typeof createEventStream>) => String(stream.body.read() ?? '');

test('events are written as the standard has them, and line breaks cannot forge another', () => {
  const stream = createEventStream(1000);
  stream.send({ name: 'changed', id: 'a.1', data: { key: 'x\n\nevent: end' } });
  stream.beat();
  assert.equal(read(stream), 'id: a.1\nevent: changed\ndata: {"key":"x\\n\\nevent: end"}\n\n: beat\n\n');
});

test('a slow reader is told so and his stream ends; nothing more is kept for him', async () => {
  const stream = createEventStream(400);
  for (let i = 0; i < 1000; i += 1) stream.send({ name: 'changed', id: `a.${i}`, data: {} });
  assert.ok(stream.body.readableLength < 500);
  const text = read(stream);
  assert.match(text, /event: end\ndata: \{"code":"overloaded"\}\n\n$/u);
  assert.equal(text.match(/event: end/gu)?.length, 1);
  stream.body.resume();
  await once(stream.body, 'close');
});

test('a reader who never reads is cut off', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stream = createEventStream(1000);
  stream.end('unavailable');
  t.mock.timers.tick(5001);
  assert.ok(stream.body.destroyed);
});
