import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { BRIDGE_ALIVE_KEY, BRIDGE_GROUP, bridgeReplyKey, bridgeRequestKey } from '@colonnade/contracts';
import type { ServiceProcess } from '@colonnade/embedded';
import { waitFor } from '../../../test/support/wait-for.ts';
import { outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

let world: World;
let master: TestMaster;
let merger: ServiceProcess;

before(async () => {
  world = await startWorld();
  master = await world.addMaster('salt-1');
  await world.addMinion('salt-1', 'web-1');
  await world.addSecret(rootTarget, 'password', 'sesame');
  merger = await world.startMerger();
  await waitFor('an answer', works);
});
after(() => world[Symbol.asyncDispose]());

/** The whole pillar, or the code of an error. */
async function outcome(ttlMs = 2000): Promise<unknown> {
  const reply = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto', ttlMs });
  return outcomeOf(reply);
}

async function works(): Promise<boolean> {
  return (
    ((await outcome().catch(() => undefined)) as { password?: string } | undefined)?.password === 'sesame'
  );
}

/** Error codes until the condition holds; a partial pillar is never among them. */
async function untilCode(code: string): Promise<void> {
  await waitFor(code, async () => {
    const got = await outcome();
    assert.ok(
      typeof got === 'string' || (got as { password?: string }).password === 'sesame',
      'a partial pillar',
    );
    return got === code;
  });
}

async function readiness(): Promise<{
  ok: boolean;
  checks: { name: string; ok: boolean; reason?: string }[];
}> {
  return (await (await fetch(`${merger.url}/readyz`)).json()) as never;
}

test('the KMS goes away: kms_unavailable, and works again when it is back', async () => {
  await world.kms.kill('SIGKILL');
  await untilCode('kms_unavailable');
  await world.kms.restart();
  await waitFor('an answer', works);
});

test('the KMS hangs: an error within the time of the request', async () => {
  await world.kms.kill('SIGSTOP');
  try {
    assert.equal(await outcome(600), 'kms_unavailable');
  } finally {
    await world.kms.kill('SIGCONT');
  }
  await waitFor('an answer', works);
});

test('Redis is restarted and has lost everything: works again', async () => {
  await world.redis.restart();
  await waitFor('the alive key', async () => (await world.admin.exists(BRIDGE_ALIVE_KEY)) === 1);
  await world.admit('salt-1');
  await waitFor('an answer', works);
});

test('Redis is restarted while the store is away: unavailable, not silence', async () => {
  const away = `${world.storePath}.away`;
  await rename(world.storePath, away);
  await untilCode('unavailable');
  await world.redis.restart();
  await waitFor('the alive key', async () => (await world.admin.exists(BRIDGE_ALIVE_KEY)) === 1);
  await world.admit('salt-1');
  await waitFor('the answer', async () => (await outcome().catch(() => undefined)) === 'unavailable');
  await rename(away, world.storePath);
  await waitFor('an answer', works);
});

test('a NATS or a Redis that hangs behind an open connection ends readiness, which names it', async () => {
  for (const [name, server] of [
    ['nats', world.bus.nats],
    ['bridge', world.redis],
  ] as const) {
    await server.kill('SIGSTOP');
    try {
      await waitFor(`readiness to name ${name}`, async () => {
        const { checks } = await readiness();
        const failed = checks.filter(({ ok }) => !ok);
        return failed.length === 1 && failed[0]?.name === name;
      });
    } finally {
      await server.kill('SIGCONT');
    }
    await waitFor('to be ready', async () => (await readiness()).ok);
  }
  await waitFor('an answer', works);
});

test('a merger may start before its Redis', async () => {
  await world.redis.kill('SIGKILL');
  const early = await world.startMerger();
  assert.equal((await fetch(`${early.url}/readyz`)).status, 503);
  await world.redis.restart();
  await waitFor('it to be ready', async () => (await fetch(`${early.url}/readyz`)).ok);
  await world.admit('salt-1');
  await waitFor('an answer', works);
  await early.kill('SIGTERM');
});

test('the functions and the groups are gone: works again', async () => {
  await world.admin.call('FUNCTION', 'FLUSH');
  await world.admin.del(bridgeRequestKey('salt-1'));
  await waitFor('an answer', works);
});

test('a Redis that would write secrets to a disk is refused, whatever the setting, until it is right again', async () => {
  const wrong = [
    ['save', '3600 1', ''],
    ['appendonly', 'yes', 'no'],
    ['maxmemory-policy', 'allkeys-lru', 'noeviction'],
    ['repl-diskless-sync', 'no', 'yes'],
    ['crash-log-enabled', 'yes', 'no'],
    ['crash-memcheck-enabled', 'yes', 'no'],
    ['slowlog-log-slower-than', '10000', '-1'],
  ] as const;
  for (const [name, value, right] of wrong) {
    await world.admin.config('SET', name, value);
    // A new connection is checked before it is used.
    await world.admin.call('CLIENT', 'KILL', 'USER', 'pillar-merger');
    await waitFor(`${name} to be refused`, async () => {
      const { checks } = await readiness();
      return checks.some((check) => !check.ok && check.reason?.includes(name));
    });
    await world.admin.config('SET', name, right);
    await waitFor('to be ready', async () => (await readiness()).ok);
  }
  await waitFor('an answer', works);
});

test('the store goes away: unavailable, and works again when it is back', async () => {
  const away = `${world.storePath}.away`;
  await rename(world.storePath, away);
  await untilCode('unavailable');
  assert.equal((await readiness()).ok, false);
  await rename(away, world.storePath);
  await waitFor('an answer', works);
});

test('the bus goes away: no secret is opened, no refusal is given off the record', async () => {
  await world.bus.nats.kill('SIGKILL');
  await untilCode('kms_unavailable');
  const refused = await master.client.ask({ minionId: 'web-1', pillarenv: 'staging', ttlMs: 4000 });
  assert.equal(outcomeOf(refused), 'unavailable');
  await world.bus.nats.restart();
  await waitFor('an answer', works);
});

test('poison: the third delivery is answered internal once its last owner is dead; a second one is answered', async () => {
  await world.addMaster('salt-2');
  const key = bridgeRequestKey('salt-2');
  await waitFor('its stream', async () => (await world.admin.exists(key)) === 1);
  // Frozen, the merger reads nothing while two others take the entries and die.
  await merger.kill('SIGSTOP');
  const text = JSON.stringify({
    v: 1,
    event: 'master_get_pillar_data',
    ...{ master: 'salt-2', minion_id: 'x', pillarenv: 'auto', token: 'x', ttl_ms: 10_000 },
  });
  // The frozen merger's own read gets what is added while it waits; after that it reads no more.
  await waitFor('its read to end', async () => {
    await world.admin.xadd(key, '*', 'data', 'x');
    const got = await world.admin.xreadgroup('GROUP', BRIDGE_GROUP, 'first', 'COUNT', 1, 'STREAMS', key, '>');
    return got !== null;
  });
  const twice = String(await world.admin.xadd(key, '*', 'data', text));
  const once = String(await world.admin.xadd(key, '*', 'data', text));
  await world.admin.xreadgroup('GROUP', BRIDGE_GROUP, 'first', 'COUNT', 10, 'STREAMS', key, '>');
  await world.admin.xclaim(key, BRIDGE_GROUP, 'second', 0, twice);
  await merger.kill('SIGCONT');
  const codeOf = async (id: string) => {
    const popped = await world.admin.blpop(bridgeReplyKey('salt-2', id), 5);
    return (JSON.parse(String(popped?.[1])) as { error: { code: string } }).error.code;
  };
  assert.equal(await codeOf(once), 'unauthorized');
  // Its owner shows itself: it may only stand still, so nobody gives its entry up.
  const seenMs = Date.now();
  await waitFor('the entry to be long overdue', async () => {
    await world.admin.xreadgroup('GROUP', BRIDGE_GROUP, 'second', 'COUNT', 1, 'STREAMS', key, '0');
    const [row] = (await world.admin.xpending(key, BRIDGE_GROUP, twice, twice, 1)) as [unknown[]];
    assert.equal(row?.[1], 'second');
    return Date.now() - seenMs > 3000;
  });
  assert.equal(await codeOf(twice), 'internal');
  await waitFor('nothing to be left', async () => (await world.admin.xlen(key)) === 0);
});

test('asked to stop, a merger answers what it has taken, leaves no consumer, and masters learn that none lives', async () => {
  await world.kms.kill('SIGSTOP');
  const taken = outcome(1500);
  const key = bridgeRequestKey('salt-1');
  await waitFor(
    'it to be taken',
    async () => ((await world.admin.xpending(key, BRIDGE_GROUP)) as [number])[0] === 1,
  );
  const stopped = merger.kill('SIGTERM');
  assert.equal(await taken, 'kms_unavailable');
  await stopped;
  await world.kms.kill('SIGCONT');
  assert.deepEqual(await world.admin.xinfo('CONSUMERS', key, BRIDGE_GROUP), []);
  await waitFor('the alive key to expire', async () => (await world.admin.exists(BRIDGE_ALIVE_KEY)) === 0);
  await assert.rejects(outcome(), { code: 'unavailable' });
});
