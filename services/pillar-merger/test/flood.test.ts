import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BRIDGE_GROUP, bridgeRequestKey, LIMITS, masterRedisUser } from '@colonnade/contracts';
import type { ServiceProcess } from '@colonnade/embedded';
import { Redis } from 'ioredis';
import { waitFor } from '../../../test/support/wait-for.ts';
import { outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

/** What a master's Redis password alone can do, past the bridge's function. */
const HOSTILE = 'salt-hostile';
const KEY = bridgeRequestKey(HOSTILE);
let world: World;
let good: TestMaster;
let merger: ServiceProcess;

before(async () => {
  world = await startWorld();
  good = await world.addMaster('salt-1');
  await world.addMaster(HOSTILE);
  await world.addMinion('salt-1', 'web-1');
  await world.addPillar(rootTarget, 'role', 'any');
  merger = await world.startMerger();
  await waitFor('both streams', async () => (await world.admin.exists(KEY)) === 1);
  await assertGoodIsServed();
});
after(() => world[Symbol.asyncDispose]());

async function assertGoodIsServed(): Promise<void> {
  await waitFor('an answer', async () => {
    const reply = await good.client.ask({ minionId: 'web-1', pillarenv: 'auto' }).catch(() => undefined);
    return reply !== undefined && (outcomeOf(reply) as { role?: string }).role === 'any';
  });
}

/** A connection as the hostile master. */
function connectHostile(): Redis {
  const { host, port } = world.redis;
  const redis = new Redis({
    ...{ host, port, username: masterRedisUser(HOSTILE), password: world.masterPassword },
    ...{ enableReadyCheck: false, disableClientInfo: true, protocol: 2, maxRetriesPerRequest: 0 },
    retryStrategy: () => null,
  });
  redis.on('error', () => {});
  return redis;
}

async function asHostile<T>(act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = connectHostile();
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
  }
}

async function metric(name: string, kind: string): Promise<number> {
  const text = await (await fetch(`${merger.url}/metrics`)).text();
  const row = text.split('\n').find((line) => line.startsWith(`${name}{`) && line.includes(`kind="${kind}"`));
  return Number(row?.split(' ')[1] ?? 0);
}

const isEmpty = async () => (await world.admin.xlen(KEY)) === 0;

test('one argument is no longer than the longest reply needs, one command no longer than all buffers', async () => {
  const tooLong = Buffer.alloc(LIMITS.redisBulkBytes + 1);
  await assert.rejects(asHostile((redis) => redis.xadd(KEY, '*', 'data', tooLong)));
  const whole = Buffer.alloc(LIMITS.redisBulkBytes);
  const times = Math.ceil(LIMITS.redisClientsBytes / LIMITS.redisBulkBytes) + 2;
  const fields = Array.from({ length: times }, () => ['data', whole]).flat();
  await assert.rejects(asHostile((redis) => redis.xadd(KEY, '*', ...fields)));
  assert.ok(await isEmpty());
});

test('huge entries that pass are read a few at a time, refused, and not kept', async () => {
  const huge = Buffer.alloc(LIMITS.bridgeReplyBytes);
  await asHostile(async (redis) => {
    for (let i = 0; i < 6; i++) await redis.xadd(KEY, '*', 'data', huge);
  });
  await waitFor('them to be gone', isEmpty);
  await assertGoodIsServed();
});

test('a flood is cut to the limit, counted, and on record once', async () => {
  await merger.kill('SIGSTOP');
  const flood = LIMITS.bridgeQueueLength + 3000;
  await asHostile(async (redis) => {
    const line = redis.pipeline();
    for (let i = 0; i < flood; i++) line.xadd(KEY, '*', 'data', 'x');
    await line.exec();
  });
  await merger.kill('SIGCONT');
  await waitFor(
    'entries to be dropped',
    async () => (await metric('colonnade_merger_dropped_total', 'too_long')) > 0,
  );
  await assertGoodIsServed();
  await waitFor('it to be gone', isEmpty, { limitMs: 20_000 });
  await waitFor('its record', async () => (await floodRecords()).length > 0);
  assert.equal((await floodRecords()).length, 1);
});

async function floodRecords() {
  const records = await world.records();
  return records.filter(
    (r) => r.user.username === `master:${HOSTILE}` && r.responseStatus?.reason === 'overloaded',
  );
}

for (const id of ['18446744073709551615-18446744073709551615', '18446744073709551615-5', '9999999999999-0']) {
  test(`a stream is made anew after an entry ${id}`, async () => {
    await asHostile((redis) => redis.xadd(KEY, id, 'data', 'x'));
    await waitFor('a new entry to be of this time', async () => {
      const next = await asHostile((redis) => redis.xadd(KEY, '*', 'data', 'x')).catch(() => undefined);
      return next !== undefined && Math.abs(Number(String(next).split('-')[0]) - Date.now()) < 60_000;
    });
    await waitFor('it to be answered', isEmpty);
    await assertGoodIsServed();
  });
}

test('a key of another type at the name of a stream is removed, and the others are read on', async () => {
  await world.admin.pipeline().del(KEY).set(KEY, 'x').exec();
  await waitFor('a stream', async () => (await world.admin.type(KEY)) === 'stream');
  const groups = (await world.admin.xinfo('GROUPS', KEY)) as unknown[][];
  assert.equal(groups[0]?.[1], BRIDGE_GROUP);
  await assertGoodIsServed();
  await waitFor(
    'the count',
    async () => (await metric('colonnade_merger_stream_faults_total', 'foreign_type')) === 1,
  );
});
