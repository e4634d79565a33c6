import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Redis } from 'ioredis';
import { redisForTests } from '../../../test/support/servers.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createReplyReader, type ReplyReader } from './reply-reader.ts';
import type { RedisServer } from './servers/index.ts';

let server: RedisServer;
let pusher: Redis;
let opened: Redis[];
let reader: ReplyReader;

const open = (): Redis => {
  const { host, port, adminUser: username, adminPassword: password } = server;
  return new Redis({ host, port, username, password, maxRetriesPerRequest: 0 }).on('error', () => {});
};
const keysOf = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}:${i}`);
const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise, Promise.resolve('not yet')])) !== 'not yet';

before(async () => {
  server = await redisForTests();
  pusher = open();
});
beforeEach(() => {
  opened = [];
  reader = createReplyReader(() => {
    const one = open();
    opened.push(one);
    return one;
  });
});
after(async () => {
  pusher.disconnect();
  await server[Symbol.asyncDispose]();
});

test('everybody gets his own reply, in whatever order they come, over one connection', async () => {
  const keys = keysOf('own', 300);
  const replies = keys.map((key) => reader.receive(key, 20_000));
  const isLate = (i: number) => i % 7 === 0;
  const order = [...keys.filter((_, i) => !isLate(i)).reverse(), ...keys.filter((_, i) => isLate(i))];
  await Promise.all(order.map((key) => pusher.rpush(key, `reply to ${key}`)));
  assert.deepEqual(
    await Promise.all(replies),
    keys.map((key) => `reply to ${key}`),
  );
  assert.ok(opened.length <= 2);
  reader.close();
});

test('many that never come hold up nobody', async () => {
  const lost = Promise.all(keysOf('lost', 100).map((key) => reader.receive(key, 4000)));
  const behind = reader.receive('behind', 20_000);
  await pusher.rpush('behind', 'here');
  assert.equal(await behind, 'here');
  // Nor one that asks while they are still waited for.
  const newcomer = reader.receive('newcomer', 20_000);
  await pusher.rpush('newcomer', 'here too');
  assert.equal(await newcomer, 'here too');
  assert.equal(await isSettled(lost), false, 'the lost ones were not waited for to the end');
  assert.deepEqual(new Set(await lost), new Set([undefined]));
  reader.close();
});

test('one that was held up gets its reply when it comes', async () => {
  const replies = keysOf('slow', 20).map((key) => reader.receive(key, 20_000));
  await waitFor('the second connection', () => opened.length === 2);
  for (const key of keysOf('slow', 20)) await pusher.rpush(key, key);
  assert.deepEqual(await Promise.all(replies), keysOf('slow', 20));
  const next = reader.receive('next', 20_000);
  await pusher.rpush('next', 'x');
  assert.equal(await next, 'x');
  reader.close();
});

test('a connection that is lost is an error for those who wait, and not for the next', async () => {
  const waiting = reader.receive('never', 20_000);
  await waitFor('the connection', () => opened[0]?.status === 'ready');
  const rejected = assert.rejects(waiting);
  const [blocked] =
    /id=(\d+) [^\n]*cmd=blpop/u.exec(String(await pusher.call('CLIENT', 'LIST')))?.slice(1) ?? [];
  await pusher.call('CLIENT', 'KILL', 'ID', String(blocked));
  await rejected;
  await waitFor('the connection again', () => opened[0]?.status === 'ready');
  const next = reader.receive('again', 20_000);
  await pusher.rpush('again', 'x');
  assert.equal(await next, 'x');
  reader.close();
});
