import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BridgeClient } from '@colonnade/embedded';
import { toPlain, type Value } from '@colonnade/value';
import { MongoClient } from 'mongodb';
import { mongoForTests, skipWithoutMongo, skipWithoutOwnMongo } from '../support/mongo.ts';
import { stackForTests, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const root = { tgt_type: 'root' };
type Version = { name: string; state: string; values: number };
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

  test('a key is followed by another: values come under it with their history, and the one before is barred and destroyed', {
    skip,
  }, async () => {
    await using mongo = await mongoForTests();
    const env = { ...storeEnv(mongo, mongo.freshDatabase()), KMS_KEY_PREPUBLISH_S: '1', REWRAP_RUN_MS: '0' };
    await using stack = await stackForTests({ env });
    const { api } = stack;
    const bridge = stack.bridge(await stack.addMaster('m1'));
    const write = writeEstate(api);
    await write.minion('m1', 'web', []);
    const [kept, gone] = [
      await write.pillar(root, 'kept', 'first', true),
      await write.pillar(root, 'gone', 'x', true),
    ];
    const etag = (await api.call('GET', `/pillars/${kept.pid}`)).headers.get('etag') ?? '';
    await api.call('POST', `/pillars/${kept.pid}/replace`, { value: 'second' }, { 'if-match': etag });
    await write.remove(gone.pid);
    const key = async (url: string, body?: Value) =>
      toPlain((await api.call('POST', `/keys/pillars/${url}`, body)).value ?? null) as Record<
        string,
        unknown
      >;
    const versions = async () => {
      const { items } = toPlain((await api.call('GET', '/keys')).value ?? null) as { items: Version[] };
      return items.filter(({ name }) => name === 'pillars');
    };
    // One pillar, its two versions, and two of what was deleted.
    assert.deepEqual(
      (await versions()).map(({ values }) => values),
      [5],
    );
    await key('rotate');
    await waitFor('the next version to seal', async () => (await versions())[1]?.state === 'active');
    await key('rewrap');
    await waitFor('the rewrap', async () => (await versions())[0]?.values === 0, { limitMs: 30_000 });
    assert.deepEqual(
      (await versions()).map(({ values }) => values),
      [0, 5],
    );
    assert.equal((await api.call('GET', `/pillars/${kept.pid}`)).status, 200);
    await key('min-version', { version: 2n });
    assert.equal((await key('destroy', { version: 1n })).state, 'destroyed');
    assert.deepEqual(await merged(bridge), { kept: 'second' });
    const { items } = toPlain((await api.call('GET', `/pillars/${kept.pid}/versions`)).value ?? null) as {
      items: { clock: number }[];
    };
    const now = (await api.call('GET', `/pillars/${kept.pid}`)).headers.get('etag') ?? '';
    const tick = BigInt(Math.min(...items.map(({ clock }) => clock)));
    await api.call('POST', `/pillars/${kept.pid}/restore`, { tick }, { 'if-match': now });
    assert.deepEqual(await merged(bridge), { kept: 'first' });
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
