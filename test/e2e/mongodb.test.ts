import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BridgeClient } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { MongoClient } from 'mongodb';
import { mongoForTests, skipWithoutMongo, skipWithoutOwnMongo } from '../support/mongo.ts';
import { stackForTests, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const root = { tgt_type: 'root' };
const WRITES = 60;
const [skip, skipOwn] = [await skipWithoutMongo(), await skipWithoutOwnMongo()];

const ask = (bridge: BridgeClient) => bridge.ask({ minionId: 'web', pillarenv: 'auto', ttlMs: 5000 });

async function merged(bridge: BridgeClient): Promise<Record<string, unknown>> {
  const reply = await ask(bridge);
  assert.ok(reply.ok, JSON.stringify(reply.ok ? '' : reply.error));
  return toPlain(reply.pillar) as Record<string, unknown>;
}

/** Where the services find the database of this test. */
function storeEnv(mongo: { url: string; user?: string; password?: string }, database: string) {
  const [hosts, options = ''] = mongo.url.split('/?');
  return {
    STORE_URL: `${hosts?.replace(/\/$/u, '')}/${database}?${options}`,
    ...(mongo.user === undefined ? {} : { STORE_USER: mongo.user }),
    ...(mongo.password === undefined ? {} : { STORE_PASSWORD: mongo.password }),
  };
}

describe('the whole line on MongoDB', () => {
  test('merges are fresh on every merger, and fail closed while the database is away', {
    skip: skipOwn,
  }, async () => {
    await using mongo = await mongoForTests();
    const env = storeEnv(mongo, mongo.freshDatabase());
    await using stack = await stackForTests({ mergers: 2, env });
    const bridge = stack.bridge(await stack.addMaster('m1'));
    const write = writeEstate(stack.api);
    await write.minion('m1', 'web', []);
    const counter = await write.pillar(root, 'counter', -1n);
    const own = { tgt_type: 'minion', master: 'm1', minion_id: 'web' };
    await write.pillar(own, 'password', 'sealed and opened', true);
    for (let i = 0; i < WRITES; i++) {
      await write.update(counter.pid, BigInt(i));
      for (const pillar of await Promise.all([merged(bridge), merged(bridge), merged(bridge)])) {
        assert.deepEqual(pillar, { counter: i, password: 'sealed and opened' });
      }
    }
    await mongo.server?.kill('SIGKILL');
    const away = await ask(bridge);
    assert.equal(away.ok ? 'ok' : away.error.code, 'unavailable');
    await mongo.server?.restart();
    const back = await waitFor('merges to come back', () => merged(bridge), { limitMs: 30_000 });
    assert.deepEqual(back, { counter: WRITES - 1, password: 'sealed and opened' });
  });

  test('with CACHE=off a merge returns what another program wrote beside us', {
    skip,
  }, async () => {
    await using mongo = await mongoForTests();
    const database = mongo.freshDatabase();
    await using stack = await stackForTests({ env: { ...storeEnv(mongo, database), CACHE: 'off' } });
    const bridge = stack.bridge(await stack.addMaster('m1'));
    const write = writeEstate(stack.api);
    await write.minion('m1', 'web', []);
    await write.pillar(root, 'ours', 1n);
    assert.deepEqual(await merged(bridge), { ours: 1 });
    const auth =
      mongo.user === undefined ? {} : { auth: { username: mongo.user, password: mongo.password ?? '' } };
    await using client = new MongoClient(mongo.url, auth);
    const pillars = client.db(database).collection('pillars');
    const theirs = { ...root, tgt_id: 'root', pillarenv: 'base', name: 'theirs', is_secret: false };
    for (let value = 0; value < 10; value++) {
      await pillars.updateOne(theirs, { $set: { value } }, { upsert: true });
      assert.deepEqual(await merged(bridge), { ours: 1, theirs: value });
    }
  });
});
