import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { ErrorCode } from '@colonnade/contracts';
import { adopt, openMongoStore, planAdoption } from '@colonnade/estate-store';
import { parseValue } from '@colonnade/value';
import { type Db, type Document, Long, MongoClient, ObjectId } from 'mongodb';
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
  ...{ v: 1, alg: 'A256GCM', kid: 'core-kek-v1', nonce_b64: 'A'.repeat(16), ct_b64: `${'A'.repeat(22)}==` },
  ...{ dek_wrap_alg: 'A256GCM', dek_wrap_nonce_b64: 'A'.repeat(16), dek_wrapped_b64: 'A'.repeat(64) },
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
    for (const name of commands) assert.match(name, /^(?:hello|listCollections|find|getMore|endSessions)$/u);
    const { confirm, ...told } = plan;
    assert.match(confirm, /^[0-9a-f]{64}$/u);
    assert.deepEqual(told, {
      ...{ inPlace: true, documents: 9, adopted: 0, fits: 6, otherRoots: 1, kids: { 'core-kek-v1': 1 } },
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
    assert.deepEqual([again.adopted, again.fits, again.misfits.reasons.taken], [5, 0, 1], 'nothing is twice');
    await refuses(planAdoption({ ...options, fields }), 'misconfigured', /not in place/u);
  });

  const THEIRS = { source: { collection: 'theirs' } };

  test('a document that has the place or the pid of another does not fit, and nothing is made before it is mended', async () => {
    const twins = [root('a'), root('a', 2), root('b')];
    await insert(twins);
    const plan = await planAdoption(options);
    assert.deepEqual([plan.fits, plan.misfits.reasons], [2, { twice: 1 }]);
    const before = await dump();
    await refuses(adopt({ ...options, confirm: plan.confirm }), 'conflict', /1 documents do not fit/u);
    assert.deepEqual(await dump(), before);

    const more = { ...THEIRS, fields: { pid: 'key' } };
    await insert(
      [...twins, root('c')].map((one, i) => ({ ...one, key: `k${i % 3}` })),
      'theirs',
    );
    await db.collection('pillars').drop();
    const beside = await planAdoption({ ...options, ...more });
    assert.deepEqual([beside.fits, beside.misfits.reasons], [2, { twice: 2 }]);
    const done = await adopt({ ...options, ...more, confirm: beside.confirm, leaveOut: true });
    assert.deepEqual(done, { adopted: 2, leftOut: 2 });
  });

  test('a plan is of one place and of what it makes: for another it confirms nothing', async () => {
    await insert([root('m', 'x', web1)]);
    const { confirm } = await planAdoption(options);
    const elsewhere = { ...options, database: mongo.freshDatabase(), source: { database: options.database } };
    await refuses(adopt({ ...elsewhere, confirm }), 'conflict', /not as it was/u);
    assert.deepEqual(await client.db(elsewhere.database).listCollections().toArray(), []);

    const { confirm: beside } = await planAdoption(elsewhere);
    await using store = await openMongoStore(elsewhere);
    const master = { id: 'm1', envs: [], tokenIds: [], onUnknownMinion: 'register' } as const;
    const put = { kind: 'master.put', expect: 'absent', record: master } as const;
    await store.write({ mutations: [put], events: [], by: 'ada', atMs: 1 });
    await refuses(adopt({ ...elsewhere, confirm: beside }), 'conflict', /not as it was/u);
    await db.collection('pillars').updateOne({}, { $set: { updated_by: 'mallory' } });
    const now = await planAdoption(elsewhere);
    assert.deepEqual(now.missing.masters, []);
    assert.notEqual(now.confirm, beside);
  });

  test('cut short beside the estate it is planned and confirmed again, and goes on; what is under a closed key does not fit', async () => {
    const many = Array.from({ length: 110 }, (_, i) => root(`n${i}`));
    await insert([...many, root('secret', { $enc }, { is_secret: true })], 'theirs');
    const first = await planAdoption({ ...options, ...THEIRS });
    // Somebody takes one of its last places while it works.
    let isTaken: Promise<unknown> | undefined;
    const onCommand = ({ commandName, command }: { commandName: string; command: Document }) => {
      if (commandName !== 'insert' || command.insert !== 'pillars') return;
      isTaken ??= db
        .collection('pillars')
        .insertOne({ ...root('n109'), pid: 'p1', tick: Long.fromNumber(1) });
    };
    const cut = adopt({ ...options, ...THEIRS, confirm: first.confirm, onCommand });
    await refuses(cut, 'already_exists', /a record with this key exists/u);
    await isTaken;
    await db.collection('pillars').deleteOne({ pid: 'p1' });
    await using store = await openMongoStore(options);
    await store.closeKids(['core-kek-v1']);
    const plan = await planAdoption({ ...options, ...THEIRS });
    assert.deepEqual([plan.adopted, plan.fits, plan.misfits.reasons], [100, 10, { kid_closed: 1 }]);
    await store.closeKids([]);
    const { confirm } = await planAdoption({ ...options, ...THEIRS });
    assert.deepEqual(await adopt({ ...options, ...THEIRS, confirm }), { adopted: 11, leftOut: 0 });
  });

  test('a collection that is not there is none of no documents, and no estate is made of it', async () => {
    for (const source of [{ collection: 'nope' }, { database: mongo.freshDatabase() }])
      await refuses(planAdoption({ ...options, source }), 'misconfigured', /no such collection to adopt/u);
    await refuses(adopt({ ...options, confirm: '' }), 'misconfigured', /no such collection to adopt/u);
    assert.deepEqual(await dump(), []);
  });
});
