import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import {
  BRIDGE_ALIVE_KEY,
  BRIDGE_FN_REPLY,
  BRIDGE_FN_REQUEST,
  BRIDGE_GROUP,
  BRIDGE_MASTERS_KEY,
  bridgeRefreshKey,
  bridgeReplyKey,
  bridgeRequestKey,
  LIMITS,
  masterAclRules,
  masterRedisUser,
  mergerAclRules,
} from '@colonnade/contracts';
import { connectBridge } from '@colonnade/embedded';
import type { RedisServer } from '@colonnade/embedded/servers';
import { toPlain } from '@colonnade/value';
import { Redis } from 'ioredis';
import { redisForTests } from '../../../test/support/servers.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { removeDead } from '../src/bridge/consumers.ts';
import { forgetConsumer, loadFunctions, storeReply } from '../src/bridge/functions.ts';
import { addRefresh } from '../src/bridge/refresh.ts';
import { createStreams } from '../src/bridge/streams.ts';

const password = randomBytes(12).toString('hex');
const OWN = bridgeRequestKey('m1');
const FOREIGN = bridgeRequestKey('m2');
let server: RedisServer;
let merger: Redis;
let master: Redis;
let admin: Redis;

function connect(username: string, secret: string): Redis {
  const { host, port } = server;
  // A master may not ask for INFO, which the ready check does.
  return new Redis({
    host,
    port,
    username,
    password: secret,
    enableReadyCheck: false,
    protocol: 2,
    disableClientInfo: true,
  });
}

before(async () => {
  server = await redisForTests({
    aclUsers: [
      `user pillar-merger ${mergerAclRules(password).join(' ')}`,
      ...['m1', 'm2'].map((id) => `user ${masterRedisUser(id)} ${masterAclRules(id, password).join(' ')}`),
    ],
  });
  merger = connect('pillar-merger', password);
  master = connect(masterRedisUser('m1'), password);
  admin = connect(server.adminUser, server.adminPassword);
  await loadFunctions(merger);
  await merger.set(BRIDGE_ALIVE_KEY, 'x');
  for (const key of [OWN, FOREIGN]) await merger.xgroup('CREATE', key, BRIDGE_GROUP, '0', 'MKSTREAM');
});
after(async () => {
  for (const redis of [merger, master, admin]) redis.disconnect();
  await server[Symbol.asyncDispose]();
});

const request = (key = OWN, max: number = LIMITS.bridgeQueueLength) =>
  master.fcall(BRIDGE_FN_REQUEST, 1, key, max, '{}');

test('what a master does works with its rights alone', async () => {
  const id = String(await request());
  assert.match(id, /^\d+-\d+$/u);
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'c', 'STREAMS', OWN, '>');
  const reply = { master: 'm1', entryId: id, ttlMs: 5000, keepMs: 5000, text: 'the reply' };
  assert.equal(await storeReply(merger, reply), true);
  assert.deepEqual(await master.blpop(bridgeReplyKey('m1', id), 1), [bridgeReplyKey('m1', id), 'the reply']);
});

test('a master reads whom it is to refresh', async () => {
  const key = bridgeRefreshKey('m1');
  const id = await addRefresh(merger, { master: 'm1', generation: 'g', minions: ['web-1', 'schön'] });
  assert.ok(Number(await merger.call('PEXPIRE', key, 1000, 'LT')) === 1, 'it would stay for ever');
  const text = '{"generation":"g","minions":["web-1","schön"],"v":1}';
  const read = await master.xread('BLOCK', 100, 'STREAMS', key, '0');
  assert.deepEqual(read, [[key, [[id, ['data', text]]]]]);
  assert.deepEqual(await master.xrevrange(key, '+', '-', 'COUNT', 1), [[id, ['data', text]]]);
  assert.equal((await master.time()).length, 2);
});

const REFRESH = bridgeRefreshKey('m1');
const refused: readonly (readonly [what: string, ...command: string[]])[] = [
  ["another's stream through the function", 'FCALL', BRIDGE_FN_REQUEST, '1', FOREIGN, '10', '{}'],
  ["another's stream", 'XADD', FOREIGN, '*', 'data', '{}'],
  ["another's length", 'XLEN', FOREIGN],
  ["another's replies", 'BLPOP', bridgeReplyKey('m2', '1-1'), '1'],
  ["another's replies, popped", 'LPOP', bridgeReplyKey('m2', '1-1')],
  ['its own stream, read', 'XRANGE', OWN, '-', '+'],
  ['its own stream, emptied', 'XTRIM', OWN, 'MAXLEN', '0'],
  ['its own stream, deleted', 'DEL', OWN],
  ["another's refreshes", 'XREAD', 'STREAMS', bridgeRefreshKey('m2'), '0'],
  ["another's last refresh", 'XREVRANGE', bridgeRefreshKey('m2'), '+', '-'],
  ['its own requests, read as refreshes', 'XREAD', 'STREAMS', OWN, '0'],
  ['a refresh made up', 'XADD', REFRESH, '*', 'data', '{}'],
  ['a refresh made up through the function', 'FCALL', BRIDGE_FN_REQUEST, '1', REFRESH, '10', '{}'],
  ['its refreshes, deleted', 'DEL', REFRESH],
  ['a group on its refreshes', 'XGROUP', 'CREATE', REFRESH, 'g', '0'],
  ['the group', 'XREADGROUP', 'GROUP', BRIDGE_GROUP, 'me', 'STREAMS', OWN, '>'],
  ['an acknowledgement', 'XACK', OWN, BRIDGE_GROUP, '1-1'],
  ['a stream under a reply key', 'XADD', bridgeReplyKey('m1', 'x'), '*', 'data', '{}'],
  ['its own stream, popped', 'LPOP', OWN],
  ['a reply made up', 'RPUSH', bridgeReplyKey('m1', '1-1'), 'x'],
  [
    'a reply through the function',
    'FCALL',
    BRIDGE_FN_REPLY,
    '2',
    OWN,
    bridgeReplyKey('m1', '1-1'),
    BRIDGE_GROUP,
    '1-1',
    '1',
    '1',
    'x',
  ],
  ['the alive key, written', 'SET', BRIDGE_ALIVE_KEY, 'x'],
  ['the alive key, popped', 'LPOP', BRIDGE_ALIVE_KEY],
  ['the alive key, as a stream', 'XADD', BRIDGE_ALIVE_KEY, '*', 'a', 'b'],
  ['the list of masters', 'HGETALL', BRIDGE_MASTERS_KEY],
  ['Lua of its own', 'EVAL', 'return 1', '0'],
  ['Lua by its hash', 'EVALSHA', '0'.repeat(40), '0'],
  ['a library', 'FUNCTION', 'LOAD', 'REPLACE', '#!lua name=x'],
  ['the libraries', 'FUNCTION', 'LIST'],
  ['no libraries', 'FUNCTION', 'FLUSH'],
  ['the keys', 'KEYS', '*'],
  ['the keys, slowly', 'SCAN', '0'],
  ['the settings', 'CONFIG', 'GET', '*'],
  ['other settings', 'CONFIG', 'SET', 'save', '1 1'],
  ['the users', 'ACL', 'LIST'],
  ['who it is', 'ACL', 'WHOAMI'],
  ['the others', 'CLIENT', 'LIST'],
  ['what others do', 'MONITOR'],
  ['a channel', 'PUBLISH', 'x', 'y'],
  ['everything gone', 'FLUSHALL'],
  ['a snapshot', 'BGSAVE'],
  ['the memory', 'DUMP', OWN],
  ['a plain key', 'GET', 'x'],
  ['the server', 'INFO'],
  ['its end', 'SHUTDOWN', 'NOSAVE'],
];
for (const [what, ...command] of refused) {
  test(`a master may not have: ${what}`, async () => {
    const [name = '', ...args] = command;
    await assert.rejects(master.call(name, ...args), /NOPERM|can't run this command or subcommand/u);
  });
}

test('without a live merger, and over the longest queue, the function says so and adds nothing', async () => {
  const before = await merger.xlen(OWN);
  await assert.rejects(request(OWN, before), /^ReplyError: OVERLOADED/u);
  await merger.del(BRIDGE_ALIVE_KEY);
  await assert.rejects(request(), /^ReplyError: NO_MERGER/u);
  await merger.set(BRIDGE_ALIVE_KEY, 'x');
  assert.equal(await merger.xlen(OWN), before);
});

test("the longest queue is ours to say, not the master's", async () => {
  const text = await readFile(new URL('../src/bridge/bridge-functions.lua', import.meta.url), 'utf8');
  assert.match(text, new RegExp(`MAX_QUEUE = ${LIMITS.bridgeQueueLength}\\n`, 'u'));
  assert.match(text, new RegExp(`ALIVE_KEY = '${BRIDGE_ALIVE_KEY}'`, 'u'));
});

test('an entry is answered once, by whoever acknowledges it, and not when it is late', async () => {
  const id = String(await request());
  const late = { master: 'm1', entryId: id, ttlMs: 5000, keepMs: 5000, text: 'x' };
  assert.equal(await storeReply(merger, late), false, 'not delivered yet');
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'c', 'STREAMS', OWN, '>');
  assert.equal(await storeReply(merger, { ...late, ttlMs: 0 }), false, 'late');
  assert.equal(await merger.exists(bridgeReplyKey('m1', id)), 0);
  assert.equal(await merger.xlen(OWN), 0);
  const again = String(await request());
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'c', 'STREAMS', OWN, '>');
  const two = ['first', 'second'].map((text) => storeReply(merger, { ...late, entryId: again, text }));
  assert.deepEqual(await Promise.all(two), [true, false]);
  assert.equal(await admin.llen(bridgeReplyKey('m1', again)), 1);
  assert.ok((await admin.pttl(bridgeReplyKey('m1', again))) > 0);
});

test('names of dead mergers are cleared away, the own name and names with work are not', async () => {
  await request();
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'dead-busy', 'STREAMS', OWN, '>');
  for (const name of ['dead', 'me']) await merger.xgroup('CREATECONSUMER', OWN, BRIDGE_GROUP, name);
  const streams = { masters: ['m1'], update: async () => {}, guard: async () => {} };
  await removeDead({ commands: merger, streams, consumer: 'me' }, 0);
  const rows = (await admin.xinfo('CONSUMERS', OWN, BRIDGE_GROUP)) as unknown[][];
  const names = rows.map((row) => String(row[1]));
  assert.deepEqual(
    ['dead', 'dead-busy', 'me'].filter((name) => names.includes(name)),
    ['dead-busy', 'me'],
  );
});

test('what stands under the key of a reply is replaced by the reply', async () => {
  const id = String(await request());
  await admin.xadd(bridgeReplyKey('m1', id), '*', 'made', 'up');
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'c', 'STREAMS', OWN, '>');
  const reply = { master: 'm1', entryId: id, ttlMs: 5000, keepMs: 5000, text: 'true' };
  assert.equal(await storeReply(merger, reply), true);
  assert.deepEqual(await admin.lrange(bridgeReplyKey('m1', id), 0, -1), ['true']);
});

test('a consumer is removed only with nothing pending, and not while it is young', async () => {
  await request();
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'busy', 'STREAMS', OWN, '>');
  await merger.xgroup('CREATECONSUMER', OWN, BRIDGE_GROUP, 'idle');
  assert.equal(await forgetConsumer(merger, 'm1', 'busy', 0), false);
  assert.equal(await forgetConsumer(merger, 'm1', 'idle', 60_000), false);
  assert.equal(await forgetConsumer(merger, 'm1', 'nobody', 0), false);
  assert.equal(await forgetConsumer(merger, 'unknown', 'idle', 0), false);
  assert.equal(await forgetConsumer(merger, 'm1', 'idle', 0), true);
});

test('a removed master is read until its stream is empty, and then forgotten; without the estate none is', async () => {
  const streams = createStreams(() => assert.fail(), 0);
  const known = () => admin.hkeys(BRIDGE_MASTERS_KEY);
  await streams.update(merger, ['m1', 'm8', 'm9']);
  await admin.del(BRIDGE_MASTERS_KEY);
  await streams.update(merger, undefined);
  assert.deepEqual(streams.masters, ['m1', 'm8', 'm9']);
  await streams.update(merger, ['m1', 'm8', 'm9']);
  const id = String(await admin.xadd(bridgeRequestKey('m8'), '*', 'data', 'x'));
  await streams.update(merger, ['m1']);
  assert.deepEqual(
    [streams.masters, (await known()).sort()],
    [
      ['m1', 'm8'],
      ['m1', 'm8'],
    ],
  );
  await admin.xdel(bridgeRequestKey('m8'), id);
  await streams.update(merger, ['m1']);
  assert.deepEqual([streams.masters, await known()], [['m1'], ['m1']]);
});

test("with a master's password and no token its stream can be filled, up to the longest queue, and its replies popped", async () => {
  const id = String(await request());
  await merger.xreadgroup('GROUP', BRIDGE_GROUP, 'c', 'STREAMS', OWN, '>');
  await storeReply(merger, {
    master: 'm1',
    entryId: id,
    ttlMs: 5000,
    keepMs: 5000,
    text: "the master's pillar",
  });
  assert.deepEqual(await master.lpop(bridgeReplyKey('m1', id)), "the master's pillar");
  const full = (await merger.xlen(OWN)) + 3;
  const added = await Promise.allSettled(Array.from({ length: 10 }, () => request(OWN, full)));
  assert.equal(added.filter(({ status }) => status === 'fulfilled').length, 3);
});

test("with the mergers' password the tokens of masters are read, and replies forged that they take", async () => {
  await admin.del(OWN);
  await merger.xgroup('CREATE', OWN, BRIDGE_GROUP, '0', 'MKSTREAM');
  const { host, port } = server;
  const username = masterRedisUser('m1');
  await using client = connectBridge({ host, port, username, password, master: 'm1', token: 'its-token' });
  const asked = client.ask({ minionId: 'web', pillarenv: 'auto', ttlMs: 5000 });
  const read = () => merger.xreadgroup('GROUP', BRIDGE_GROUP, 'thief', 'STREAMS', OWN, '>');
  const found = (await waitFor('the request', async () => (await read()) ?? undefined)) as [
    string,
    [string, string[]][],
  ][];
  const [entryId = '', fields = []] = found[0]?.[1][0] ?? [];
  assert.ok(fields.join().includes('its-token'));
  const text = JSON.stringify({ v: 1, id: entryId, ok: true, pillar: { root: 'forged' }, clock: 1 });
  assert.equal(await storeReply(merger, { master: 'm1', entryId, ttlMs: 5000, keepMs: 5000, text }), true);
  const reply = await asked;
  assert.deepEqual(reply.ok && toPlain(reply.pillar), { root: 'forged' });
});
