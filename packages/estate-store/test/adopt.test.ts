import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { ErrorCode } from '@colonnade/contracts';
import { adopt, openMongoStore, planAdoption } from '@colonnade/estate-store';
import { parseValue } from '@colonnade/value';
import { type Db, type Document, MongoClient, ObjectId } from 'mongodb';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';

const refuses = (promise: Promise<unknown>, code: ErrorCode, message: RegExp) =>
  assert.rejects(promise, (error: { code?: unknown; message: string }) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });

const root = (name: string, value: unknown = 1, more: object = {}): Document => ({
  ...{
    tgt_type: 'root',
    tgt_id: 'root',
    name,
    pillarenv: 'base',
    value,
    is_secret: false,
    created_by: 'eve',
  },
  ...more,
});

const $enc = {
  ...{ v: 1, alg: 'A256GCM', kid: 'core-kek-v1', nonce_b64: 'AAAA', ct_b64: 'AAAA' },
  ...{ dek_wrap_alg: 'A256GCM', dek_wrap_nonce_b64: 'AAAA', dek_wrapped_b64: 'AAAA' },
};

const web1 = { tgt_type: 'minion', tgt_id: 'web1', pillarenv: 'minion_id:web1;master:m1' };
const inC1 = { tgt_type: 'collection', tgt_id: 'c1', pillarenv: 'collection:c1;user:ada' };

const FITTING = [
  root('a', 1, { extra: 'of theirs' }),
  root('b', { f: 1.5, list: [1, 'x', null] }),
  root('secret', { $enc }, { is_secret: true }),
  root('m', 'x', web1),
  root('c', 'x', inC1),
  root('other root', 'x', { tgt_id: 'global' }),
];

const MISFITS = [root('date', new Date()), root('open', 'plain', { is_secret: true }), root('', 1)];

const look = { since: undefined, collections: false, masters: [], minions: [] };

describe('adopting a collection of another program', { skip: await skipWithoutMongo() }, () => {
  let mongo: TestMongo;
  let client: MongoClient;
  let db: Db;
  let options: { url: string; user?: string; password?: string; database: string; by: string };

  before(async () => {
    mongo = await mongoForTests();
    const { url, user, password } = mongo;
    client = new MongoClient(
      url,
      user === undefined ? {} : { auth: { username: user, password: password ?? '' } },
    );
  });
  after(async () => {
    await client?.close();
    await mongo?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    const { url, user, password } = mongo;
    const account = user === undefined || password === undefined ? {} : { user, password };
    options = { url, ...account, database: mongo.freshDatabase(), by: 'adopter' };
    db = client.db(options.database);
  });

  /** Everything the database holds. */
  async function dump(): Promise<unknown> {
    const names = (await db.listCollections().toArray()).map(({ name }) => name).sort();
    const all = names.map(async (name) => {
      const collection = db.collection(name);
      return [name, await collection.find({}).sort({ _id: 1 }).toArray(), await collection.indexes()];
    });
    return await Promise.all(all);
  }

  const insert = (documents: readonly Document[], name = 'pillars') =>
    db.collection(name).insertMany(documents.map((document) => ({ ...document })));

  test('a plan tells what fits, what does not and what is missing, and changes nothing', async () => {
    const { insertedIds } = await insert([...FITTING, ...MISFITS]);
    const before = await dump();
    const commands = new Set<string>();
    const plan = await planAdoption({
      ...options,
      onCommand: ({ commandName }) => void commands.add(commandName),
    });
    assert.deepEqual(await dump(), before);
    for (const name of commands) assert.match(name, /^(?:hello|find|getMore|endSessions)$/u);
    const { confirm, ...told } = plan;
    assert.match(confirm, /^[0-9a-f]{64}$/u);
    assert.deepEqual(told, {
      ...{ inPlace: true, documents: 9, adopted: 0, fits: 6, otherRoots: 1 },
      misfits: {
        count: 3,
        reasons: { value_type: 1, not_sealed: 1, name: 1 },
        first: [
          { id: String(insertedIds[6]), misfits: ['value_type'] },
          { id: String(insertedIds[7]), misfits: ['not_sealed'] },
          { id: String(insertedIds[8]), misfits: ['name'] },
        ],
      },
      missing: { masters: ['m1'], minions: ['m1/web1'], collections: [{ id: 'c1', owner: 'ada' }] },
    });
    await refuses(adopt({ ...options, confirm }), 'conflict', /3 documents do not fit: mend or remove them/u);
    await refuses(adopt({ ...options, confirm, leaveOut: true }), 'conflict', /do not fit/u);
    assert.deepEqual(await dump(), before);
  });

  test('in place documents keep all they have, and become pillars with a history', async () => {
    const { insertedIds } = await insert(FITTING);
    const before = await db.collection('pillars').find({}).sort({ _id: 1 }).toArray();
    const { confirm } = await planAdoption(options);
    assert.deepEqual(await adopt({ ...options, confirm }), { adopted: 6, leftOut: 0 });
    const now = await db.collection('pillars').find({}).sort({ _id: 1 }).toArray();
    for (const [i, document] of now.entries()) {
      const { pid, tick, updated_by, created_at, updated_at, of_master, kid, ...theirs } = document;
      assert.deepEqual(theirs, before[i]);
      assert.equal(kid, theirs.value?.$enc?.kid);
      assert.equal(of_master, theirs.tgt_type === 'minion' ? 'm1' : undefined);
      assert.equal(pid, String(before[i]?._id));
      assert.ok(created_at instanceof Date && updated_at instanceof Date && updated_by === 'eve' && tick > 0);
    }
    await using store = await openMongoStore(options);
    const pid = String(insertedIds[2]);
    const secret = await store.getPillar(pid);
    assert.deepEqual(secret?.value, parseValue(JSON.stringify({ $enc })));
    assert.deepEqual(await store.listVersions(pid), [{ ...secret, op: 'create', purged: false }]);
    assert.deepEqual((await store.getMinion('m1', 'web1'))?.registeredBy, 'adopter');
    assert.equal((await store.getCollection('c1'))?.owner, 'ada');
    const seen = await store.snapshot({ ...look, scopes: ['base', web1.pillarenv, inC1.pillarenv] });
    assert.deepEqual(
      [...seen.scopes.values()].map((rows) => rows.length),
      [4, 1, 1],
    );
    const update = {
      kind: 'pillar.update',
      pid,
      value: 2n,
      isSecret: false,
      expectTick: secret?.tick,
    } as const;
    await store.write({ mutations: [update], events: [], by: 'ada', atMs: 1 });
    assert.equal((await store.listVersions(pid)).length, 2);
  });

  test('what another program writes afterwards is adopted by another plan, in the running estate', async () => {
    await insert(FITTING);
    await adopt({ ...options, ...(await planAdoption(options)) });
    await using store = await openMongoStore(options);
    const { clock } = await store.snapshot({ ...look, scopes: [] });
    await insert([root('later', 'y')]);
    const plan = await planAdoption(options);
    assert.deepEqual([plan.adopted, plan.fits, plan.missing.masters], [6, 1, []]);
    assert.deepEqual(await adopt({ ...options, confirm: plan.confirm }), { adopted: 1, leftOut: 0 });
    const seen = await store.snapshot({ ...look, since: clock, scopes: ['base'] });
    assert.deepEqual(seen.changed, ['scope:base']);
    assert.equal(seen.scopes.get('base')?.length, 5);
    assert.equal((await planAdoption(options)).fits, 0);
  });

  test('only what was confirmed is done', async () => {
    await insert(FITTING);
    const { confirm } = await planAdoption(options);
    await db.collection('pillars').updateOne({ name: 'a' }, { $set: { value: 2 } });
    const before = await dump();
    await refuses(adopt({ ...options, confirm }), 'conflict', /not as it was when it was confirmed/u);
    await refuses(adopt({ ...options, confirm: '' }), 'conflict', /not as it was when it was confirmed/u);
    assert.deepEqual(await dump(), before);
  });

  test('a collection of other names is adopted into an estate beside it, and what does not fit is left out', async () => {
    const renamed = [...FITTING, ...MISFITS].map(({ value, is_secret, ...rest }) => ({
      ...rest,
      data: value,
      secret: is_secret,
    }));
    await insert(renamed, 'their_pillars');
    const fields = { value: 'data', is_secret: 'secret' };
    const source = { source: { collection: 'their_pillars' }, fields };
    await using store = await openMongoStore(options);
    const twin = {
      tgtType: 'root',
      tgtId: 'root',
      pillarenv: 'base',
      name: 'a',
      pid: 'p1',
      value: 'x',
      isSecret: false,
    } as const;
    await store.write({
      mutations: [{ kind: 'pillar.create', record: twin }],
      events: [],
      by: 'ada',
      atMs: 1,
    });
    const before = await db.collection('their_pillars').find({}).toArray();
    const plan = await planAdoption({ ...options, ...source });
    assert.deepEqual([plan.inPlace, plan.fits, plan.misfits.reasons.taken], [false, 5, 1]);
    await refuses(adopt({ ...options, ...source, confirm: plan.confirm }), 'conflict', /leave them out/u);
    const done = await adopt({ ...options, ...source, confirm: plan.confirm, leaveOut: true });
    assert.deepEqual(done, { adopted: 5, leftOut: 4 });
    assert.deepEqual(await db.collection('their_pillars').find({}).toArray(), before);
    const [b] = (await store.listPillars({ tgtTypes: ['root'], name: 'b' }, { after: undefined, limit: 1 }))
      .rows;
    assert.deepEqual(b?.value, parseValue('{"f":1.5,"list":[1,"x",null]}'));
    assert.ok(ObjectId.isValid(b?.pid ?? ''));
    const again = await planAdoption({ ...options, ...source });
    assert.deepEqual([again.fits, again.misfits.reasons.taken], [0, 6], 'nothing is adopted twice');
    await refuses(planAdoption({ ...options, fields }), 'misconfigured', /not in place/u);
  });
});
