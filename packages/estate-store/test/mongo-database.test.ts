import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { ErrorCode } from '@colonnade/contracts';
import {
  type EstateReader,
  type EstateStore,
  openMongoReader,
  openMongoStore,
} from '@colonnade/estate-store';
import { parseValue } from '@colonnade/value';
import { type CommandStartedEvent, type Db, Int32, Long, MongoClient, ObjectId } from 'mongodb';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';

function create(store: EstateStore, pid: string, value = parseValue('"x"'), isSecret = false) {
  const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
  const record = { ...target, pid, name: pid, value, isSecret };
  return store.write({ mutations: [{ kind: 'pillar.create', record }], events: [], by: 'ada', atMs: 1 });
}

const look = (reader: EstateReader, scopes: string[] = []) =>
  reader.snapshot({ since: undefined, scopes, collections: false, masters: [], minions: [] });

const pidsOf = async (reader: EstateReader) =>
  (await look(reader, ['base'])).scopes.get('base')?.map(({ pid }) => pid);

const refuses = (promise: Promise<unknown>, code: ErrorCode, message: RegExp) =>
  assert.rejects(promise, (error: { code?: unknown; message: string }) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });

/** As another program writes it. */
const foreign = (name: string, value: unknown) => ({
  ...{
    tgt_type: 'root',
    tgt_id: 'root',
    pillarenv: 'base',
    name,
    value,
    is_secret: false,
    created_by: 'eve',
  },
});

describe('the database of an estate', { skip: await skipWithoutMongo() }, () => {
  let mongo: TestMongo;
  let client: MongoClient;
  let db: Db;
  let options: { url: string; user?: string; password?: string; database: string };

  before(async () => {
    mongo = await mongoForTests();
    const { url, user, password } = mongo;
    const auth = user === undefined ? {} : { auth: { username: user, password: password ?? '' } };
    client = new MongoClient(url, { ...auth, promoteValues: false });
  });
  after(async () => {
    await client?.close();
    await mongo?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    const { url, user, password } = mongo;
    const account = user === undefined || password === undefined ? {} : { user, password };
    options = { url, ...account, database: mongo.freshDatabase() };
    db = client.db(options.database);
  });
  afterEach(() => db.dropDatabase());

  test('a pillar is a document with the fields of the seed, its sealed value field for field', async () => {
    await using store = await openMongoStore(options);
    const sealed = { v: 1, alg: 'A256GCM', kid: 'core-kek-v1', nonce_b64: 'AAAA', ct_b64: 'BBBB' };
    const wrapped = { dek_wrap_alg: 'A256GCM', dek_wrap_nonce_b64: 'CC', dek_wrapped_b64: 'DD' };
    const value = parseValue(JSON.stringify({ $enc: { ...sealed, ...wrapped } }));
    await create(store, 'p1', value, true);
    const document: Record<string, unknown> = (await db.collection('pillars').findOne({})) ?? {};
    const { _id, created_at, updated_at, ...rest } = document;
    assert.ok(_id instanceof ObjectId && created_at instanceof Date && updated_at instanceof Date);
    assert.deepEqual(rest, {
      ...{ tgt_type: 'root', tgt_id: 'root', name: 'p1', pillarenv: 'base' },
      value: { $enc: { ...sealed, v: new Int32(1), ...wrapped } },
      ...{ is_secret: true, created_by: 'ada', updated_by: 'ada', pid: 'p1', tick: Long.fromNumber(1) },
      // Beside it, so that the uses of a key can be counted by an index.
      kid: 'core-kek-v1',
    });
  });

  test('a value that BSON cannot hold leaves no other value behind, in either direction', async () => {
    await using store = await openMongoStore(options);
    const fieldsOf = async () => Object.keys((await db.collection('pillars').findOne({})) ?? {});
    const update = (text: string) =>
      store.write({
        mutations: [
          {
            kind: 'pillar.update',
            pid: 'p1',
            expectTick: undefined,
            value: parseValue(text),
            isSecret: false,
          },
        ],
        ...{ events: [], by: 'ada', atMs: 1 },
      });
    await create(store, 'p1', parseValue('{"a\\u0000":1}'));
    assert.ok((await fieldsOf()).includes('value_json') && !(await fieldsOf()).includes('value'));
    await update('{"a":1}');
    assert.ok(!(await fieldsOf()).includes('value_json') && (await fieldsOf()).includes('value'));
    await update('{"$ref":1}');
    assert.deepEqual((await store.getPillar('p1'))?.value, parseValue('{"$ref":1}'));
  });

  test('many that open a new database at once all find it migrated, with one clock', async () => {
    const stores = await Promise.all(Array.from({ length: 5 }, () => openMongoStore(options)));
    const clocks = await Promise.all(stores.map(async (store) => (await look(store)).clock));
    assert.equal(new Set(clocks.map(({ incarnation }) => incarnation)).size, 1);
    await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
    assert.equal(await db.collection('colonnade_writers').countDocuments(), 0, 'who is gone is not listed');
    const unique = (await db.collection('pillars').indexes()).find(
      (index) => index.unique && 'tgt_id' in index.key,
    );
    assert.deepEqual(Object.keys(unique?.key ?? {}), ['tgt_type', 'tgt_id', 'name', 'pillarenv']);
  });

  test('an index that another program made under its own name serves', async () => {
    const key = { tgt_type: 1, tgt_id: 1, name: 1, pillarenv: 1 } as const;
    await db.collection('pillars').createIndex(key, { unique: true, name: 'of_another' });
    await using store = await openMongoStore(options);
    await create(store, 'p1');
    const names = (await db.collection('pillars').indexes()).map(({ name }) => name);
    assert.equal(names.filter((name) => name?.includes('tgt_type')).length, 0);
    assert.equal((await store.findPillar('root', 'root', 'p1', 'base'))?.pid, 'p1');
  });

  test('an index of another program that leaves documents out does not serve, and is named', async () => {
    const key = { tgt_type: 1, tgt_id: 1, name: 1, pillarenv: 1 } as const;
    for (const other of [{}, { unique: true, partialFilterExpression: { is_secret: true } }]) {
      await db.collection('pillars').createIndex(key, { ...other, name: 'of_another' });
      await refuses(openMongoStore(options), 'misconfigured', /index of another program/u);
      await db.collection('pillars').dropIndex('of_another');
    }
    await using store = await openMongoStore(options);
    await create(store, 'p1');
  });

  test('a newer schema is refused by writer and reader, also by those that are open', async () => {
    await using store = await openMongoStore(options);
    await using reader = await openMongoReader(options);
    await reader.ping();
    await db.collection('colonnade_meta').updateOne({}, { $set: { schema_version: 99 } });
    await refuses(openMongoStore(options), 'misconfigured', /schema 99, this program knows up to \d+:/u);
    await refuses(look(reader), 'misconfigured', /schema 99/u);
    await refuses(create(store, 'p1'), 'misconfigured', /schema 99/u);
  });

  test('pillars of another program are not taken over just by opening', async () => {
    await db.collection<object>('pillars').insertOne(foreign('a', 'x'));
    await refuses(openMongoStore(options), 'misconfigured', /adopt them first/u);
    assert.equal(await db.collection('colonnade_meta').countDocuments(), 0);
  });

  test('what another program writes beside us is in the next snapshot; what is no JSON fails its scope', async () => {
    await using store = await openMongoStore(options);
    await create(store, 'p1');
    const { insertedId } = await db.collection<object>('pillars').insertOne(foreign('a', { n: 1, f: 1.5 }));
    const [seen] = (await look(store, ['base'])).scopes.get('base') ?? [];
    assert.deepEqual(
      { pid: seen?.pid, value: seen?.value, createdBy: seen?.createdBy, tick: seen?.tick },
      { pid: String(insertedId), value: parseValue('{"f":1.5,"n":1}'), createdBy: 'eve', tick: 0 },
    );
    await refuses(create(store, 'a'), 'already_exists', /a pillar of this name/u);
    await db.collection<object>('pillars').insertOne(foreign('b', new Date()));
    await refuses(look(store, ['base']), 'internal', /a type that JSON does not have/u);
    await look(store, ['prod']);
  });

  test('an older copy put in place without a new incarnation is refused by whoever saw the newer one', async () => {
    await using store = await openMongoStore(options);
    await create(store, 'p1');
    await create(store, 'p2');
    await look(store);
    await db.collection('colonnade_meta').updateOne({}, { $set: { tick: Long.fromNumber(1) } });
    await refuses(look(store), 'unavailable', /clock .* went back/u);
    await using _restored = await openMongoStore({ ...options, newIncarnation: true });
    assert.deepEqual(await pidsOf(store), ['p1', 'p2']);
  });

  test('changes that are forgotten are removed', async () => {
    await using store = await openMongoStore({ ...options, changeTicksKept: 5 });
    await Promise.all(Array.from({ length: 300 }, (_, i) => create(store, `p${i}`)));
    const left = await db.collection('colonnade_changes').countDocuments();
    assert.ok(left < 120, `${left} are left`);
  });

  test('of writes that wait together, one that is refused harms no other', async () => {
    await using store = await openMongoStore(options);
    const pids = ['a', 'b', 'a', 'c', 'd'];
    const outcomes = await Promise.allSettled(pids.map((pid) => create(store, pid)));
    assert.deepEqual(
      outcomes.map((one) => (one.status === 'fulfilled' ? one.value.clock.tick : one.reason.code)),
      [1, 2, 'conflict', 3, 4],
    );
    assert.deepEqual(await pidsOf(store), ['a', 'b', 'c', 'd']);
  });

  test('a read of several queries is begun anew when the server ends its transaction', async () => {
    let killed: Promise<unknown> | undefined;
    const reads: string[] = [];
    const onCommand = ({ commandName, command }: CommandStartedEvent) => {
      if (commandName !== 'find' || command.find !== 'colonnade_collections' || !command.lsid) return;
      reads.push(command.filter._id);
      killed ??= db.command({ killSessions: [command.lsid] });
    };
    await using store = await openMongoStore(options);
    await using reading = await openMongoStore({ ...options, onCommand });
    const ids = Array.from({ length: 30 }, (_, i) => `c${String(i).padStart(2, '0')}`);
    const mutations = ids.map((id, i) => {
      const record = { id, name: id, parentId: i === 0 ? undefined : ids[i - 1], owner: 'ada' };
      return { kind: 'collection.put', expect: 'absent', record } as const;
    });
    await store.write({ mutations, events: [], by: 'ada', atMs: 1 });
    const branch = await reading.getBranch('c29');
    await killed;
    assert.deepEqual(
      branch.map(({ id }) => id),
      ids,
    );
    assert.ok(reads.filter((id) => id === 'c29').length > 1, 'it was begun anew');
  });

  for (const held of ['colonnade_meta', 'pillars']) {
    test(`a writer that died within its transaction on ${held} keeps others for a second, not for a minute`, async () => {
      await using store = await openMongoStore(options);
      await using impatient = await openMongoStore({ ...options, writeTimeoutMs: 300 });
      await create(store, 'p1');
      await using session = client.startSession();
      const hold = async () => {
        session.startTransaction();
        await db.collection(held).updateOne({}, { $set: { held: true } }, { session });
      };
      const update = {
        kind: 'pillar.update',
        pid: 'p1',
        expectTick: undefined,
        value: 2n,
        isSecret: true,
      } as const;
      const batch = { mutations: [update], events: [], by: 'ada', atMs: 1 };

      await hold();
      await refuses(impatient.write(batch), 'unavailable', /cannot do this now/u);
      await session.abortTransaction();
      assert.equal((await impatient.write(batch)).clock.tick, 2);

      await db.collection<{ _id: unknown }>('colonnade_writers').insertOne({ _id: session.id?.id });
      await hold();
      const startedMs = performance.now();
      assert.equal((await store.write(batch)).clock.tick, 3);
      assert.ok(performance.now() - startedMs < 4500);
      await session.abortTransaction().catch(() => undefined);
    });
  }
});
