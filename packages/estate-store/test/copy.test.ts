import assert from 'node:assert/strict';
import path from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { ErrorCode } from '@colonnade/contracts';
import {
  copyStore,
  type EstatePlace,
  type EstateStore,
  type Mutation,
  openMongoStore,
  openSqliteStore,
} from '@colonnade/estate-store';
import { parseValue } from '@colonnade/value';
import { MongoClient } from 'mongodb';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';

const VALUES = [
  ...[
    '1',
    '1.0',
    '-0.0',
    '9223372036854775807',
    '"\\u0000ё🦊"',
    '[[],{"a":[null,true]}]',
    '{"$enc":{"v":1}}',
  ],
  ...[
    '{"__proto__":1,"$set":2.0,"a.b":3}',
    '{"a\\u0000":1}',
    '{"$ref":"a.b","$id":1}',
    '1.7976931348623157e+308',
  ],
];
const TICK_LIMIT = { after: undefined, limit: 500 };

const refuses = (promise: Promise<unknown>, code: ErrorCode, message: RegExp) =>
  assert.rejects(promise, (error: { code?: unknown; message: string }) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });

function create(pid: string, text = '1', more: object = {}): Mutation {
  const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
  return {
    kind: 'pillar.create',
    record: { ...target, pid, name: pid, value: parseValue(text), isSecret: false, ...more },
  };
}

const write = (store: EstateStore, ...mutations: Mutation[]) =>
  store.write({
    mutations,
    events: [{ type: 't', subject: 's', data: parseValue('{"f":1.0}') }],
    by: 'ada',
    atMs: 5,
  });

const ANSWER = { scope: 'ada POST k', fingerprint: 'f', response: parseValue('{"i":1,"f":1.0}') };

const REWRAP = {
  ...{ key: 'pillars', kid: 'k2', by: 'ada', startedAtMs: 1, updatedAtMs: 2, finishedAtMs: undefined },
  ...{ rewrapped: 3, failed: 0, left: 4 },
};

async function fill(store: EstateStore): Promise<void> {
  const collection = (id: string, parentId?: string): Mutation => ({
    ...{ kind: 'collection.put', expect: 'absent' },
    record: { id, name: id, parentId, owner: 'ada' },
  });
  // The child's id sorts before its parent's.
  await write(store, collection('z'), collection('a', 'z'), collection('m', 'a'));
  const master = { id: 'm1', envs: ['prod', 'qa'], tokenIds: ['t'], onUnknownMinion: 'refuse' } as const;
  const minion = { master: 'm1', id: 'web1', collections: ['m', 'z'], registeredBy: 'ada' };
  const token = {
    ...{ id: 't1', hash: 'ab', sub: 'ada', roles: ['admin'] as const, scopedRoles: [], createdAtMs: 7 },
    ...{ expiresAtMs: undefined, lastUsedAtMs: undefined },
  };
  await write(
    store,
    { kind: 'master.put', expect: 'absent', record: master },
    { kind: 'minion.put', expect: 'absent', record: minion },
    { kind: 'token.put', expect: 'absent', record: token },
    ...['web1', 'web2'].map((id): Mutation => {
      const facts = parseValue('{"$os":1.0,"cpus":2}');
      return { kind: 'inventory.put', expect: 'absent', record: { master: 'm1', id, facts } };
    }),
    {
      ...{ kind: 'token.put', expect: 'absent' },
      record: {
        ...{ ...token, id: 't2', expiresAtMs: 99, lastUsedAtMs: 98 },
        scopedRoles: [{ role: 'editor', collections: ['z'], name_prefixes: ['é'] }],
      },
    },
  );
  await write(store, ...VALUES.map((text, i) => create(`p${i}`, text)));
  await write(
    store,
    create('c', '"x"', { tgtType: 'collection', tgtId: 'a', pillarenv: 'collection:a;user:ada' }),
  );
  const minions = [{ master: 'm1', id: 'web1' }];
  const task = { id: 'k1', templateId: 'tpl', minions, collections: ['m'], expiresAtMs: 77 };
  await write(
    store,
    {
      kind: 'template.put',
      expect: 'absent',
      record: { id: 'tpl', name: 'T', schema: parseValue('{"$ref":1.0}') },
    },
    { kind: 'task.create', record: task },
    { kind: 'task.create', record: { ...task, id: 'k2', minions: [], expiresAtMs: undefined } },
  );
  const service = { id: 'shop', types: parseValue('[{"schema":{"$id":1.0}}]'), enrolmentIds: ['e'] };
  await write(store, { kind: 'service.put', expect: 'absent', record: service });
  await write(store, { kind: 'task.setState', id: 'k2', expectTick: undefined, state: 'failed' });
  await write(store, create('gone'), create('é'), create('🦊'), create('\uffff'));
  await write(store, { kind: 'pillar.delete', pid: 'gone', expectTick: undefined });
  const kept = { ...ANSWER, expiresAtMs: Date.now() + 3_600_000 };
  await store.write({ mutations: [create('idem')], events: [], by: 'ada', atMs: 6, idempotency: kept });
  await store.acquireLease('relay', 'r1', 60_000);
  await write(store, create('sealed', '{"$enc":{"kid":"k2"}}', { isSecret: true }));
  await store.closeKids(['k1']);
  await store.writeRewrap(REWRAP);
}

/** All the port shows. */
async function dump(store: EstateStore) {
  const tgtTypes = ['root', 'collection', 'minion', 'task_tpl', 'task'] as const;
  const pillars = (await store.listPillars({ tgtTypes }, TICK_LIMIT)).rows;
  const pids = [...pillars.map(({ pid }) => pid), 'gone'];
  return {
    pillars,
    versions: await Promise.all(pids.map((pid) => store.listVersions(pid))),
    collections: await store.listCollections(),
    masters: await store.listMasters(),
    minions: await store.listMinions({}, TICK_LIMIT),
    tokens: await store.listTokens(),
    templates: await store.listTemplates(TICK_LIMIT),
    tasks: await store.listTasks({}, TICK_LIMIT),
    inventories: await store.listInventories({}, TICK_LIMIT),
    services: await store.listServices(TICK_LIMIT),
    outbox: await store.readOutbox(1000),
    answer: await store.findIdempotent(ANSWER.scope),
    keys: [await store.readClosedKids(), await store.readRewrap(), await store.countKeyUse()],
  };
}

const open = (place: EstatePlace) =>
  place.kind === 'sqlite' ? openSqliteStore(place) : openMongoStore(place);

describe('copies of an estate', { skip: await skipWithoutMongo() }, () => {
  let mongo: TestMongo;
  let dir: TempDir;
  let count = 0;
  before(async () => {
    mongo = await mongoForTests();
  });
  after(() => mongo?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    dir = await tempDir('copy');
  });
  afterEach(() => dir[Symbol.asyncDispose]());

  const sqlite = (): EstatePlace => ({ kind: 'sqlite', path: path.join(dir.path, `${count++}.db`) });
  const mongodb = () => {
    const { url, user, password } = mongo;
    return { kind: 'mongodb', url, user, password, database: mongo.freshDatabase() } as const;
  };

  async function filled(place: EstatePlace): Promise<EstatePlace> {
    await using store = await open(place);
    await fill(store);
    return place;
  }

  test('from SQLite to MongoDB and back everything is the same, and goes on where it was', async () => {
    const first = await filled(sqlite());
    const [second, third] = [mongodb(), sqlite()];
    const there = await copyStore(first, second);
    const back = await copyStore(second, third);
    assert.deepEqual(back.tables, there.tables);
    assert.equal(there.tables.pillars.rows, VALUES.length + 6);
    await using original = await open(first);
    const before = await dump(original);
    for (const place of [second, third]) {
      await using copy = await open(place);
      assert.deepEqual(await dump(copy), before);
      await refuses(write(copy, create('gone')), 'conflict', /pid was used before/u);
      const { clock } = await write(copy, create('new'));
      assert.ok(clock.tick > there.from.tick + 1_000_000 && clock.incarnation !== there.from.incarnation);
      const again = { ...ANSWER, response: null, expiresAtMs: Date.now() + 1000 };
      const replay = await copy.write({
        mutations: [create('x')],
        events: [],
        by: 'a',
        atMs: 1,
        idempotency: again,
      });
      assert.deepEqual(replay.replayed && replay.response, ANSWER.response);
      const lease = await copy.acquireLease('relay', 'r2', 1000);
      assert.equal(lease?.fence, 2, 'held by nobody, its fence higher');
    }
  });

  test('a place that holds an estate is not copied into', async () => {
    const source = await filled(sqlite());
    for (const place of [await filled(sqlite()), await filled(mongodb())]) {
      await refuses(copyStore(source, place), 'conflict', /holds an estate already/u);
      await using store = await open(place);
      assert.equal(
        (await store.listPillars({ tgtTypes: ['root'] }, TICK_LIMIT)).rows.length,
        VALUES.length + 5,
      );
    }
    for (const place of [sqlite(), mongodb()]) {
      await (await open(place))[Symbol.asyncDispose]();
      assert.ok(await copyStore(source, place), 'an estate nothing was ever written to counts as empty');
    }
    await refuses(copyStore(sqlite(), mongodb()), 'unavailable', /does not exist/u);
    await refuses(copyStore(mongodb(), sqlite()), 'unavailable', /holds no estate yet/u);
  });

  for (const kind of ['sqlite', 'mongodb'] as const) {
    test(`what is written to ${kind} while it is copied makes the copy fail, and leaves no estate`, async () => {
      const source = await filled(kind === 'sqlite' ? sqlite() : mongodb());
      await using store = await open(source);
      let written: Promise<unknown> | undefined;
      const onProgress = async () => {
        written ??= write(store, create('late'));
        await written;
      };
      const target = kind === 'sqlite' ? mongodb() : sqlite();
      await refuses(copyStore(source, target, { onProgress }), 'conflict', /written to while it was copied/u);
      assert.ok(await copyStore(source, target), 'and may be done again');
      await using copy = await open(target);
      assert.deepEqual(await dump(copy), await dump(store));
    });
  }

  for (const kind of ['sqlite', 'mongodb'] as const) {
    test(`what makes no tick on ${kind} is noticed as well: a value rewrapped after it was compared, a key closed`, async () => {
      const source = await filled(kind === 'sqlite' ? sqlite() : mongodb());
      await using store = await open(source);
      let done: Promise<unknown> | undefined;
      const onProgress = async () => {
        done ??= store.writeRewrap({ ...REWRAP, rewrapped: 4 });
        await done;
      };
      const target = kind === 'sqlite' ? mongodb() : sqlite();
      await refuses(copyStore(source, target, { onProgress }), 'conflict', /written to while it was copied/u);
      done = undefined;
      const closing = async () => {
        done ??= store.closeKids(['k1', 'k3']);
        await done;
      };
      await refuses(
        copyStore(source, target, { onProgress: closing }),
        'conflict',
        /written to while it was copied/u,
      );
      assert.ok(await copyStore(source, target));
      await using copy = await open(target);
      assert.deepEqual(await copy.readClosedKids(), ['k1', 'k3']);
      const late = create('late', '{"$enc":{"kid":"k1"}}', { isSecret: true });
      await refuses(write(copy, late), 'conflict', /given up/u);
    });
  }

  test('a copy that is not the same is not finished', async () => {
    const source = await filled(sqlite());
    const target = mongodb();
    const auth =
      target.user === undefined ? {} : { auth: { username: target.user, password: target.password ?? '' } };
    await using client = new MongoClient(target.url, auth);
    const onProgress = async (table: string) => {
      if (table !== 'versions') return;
      await client
        .db(target.database)
        .collection('pillars')
        .updateOne({ pid: 'p3' }, { $set: { value: 1 } });
    };
    const copying = copyStore(source, target, { onProgress });
    await refuses(copying, 'conflict', /the pillars of the copy are not those of the estate/u);
    await refuses(open(target), 'misconfigured', /has not been finished/u);
  });

  test('a copy that was cut short is no estate, and is begun anew', async () => {
    const source = await filled(sqlite());
    const onProgress = (table: string) => {
      if (table === 'versions') throw new Error('cut short');
    };
    const target = mongodb();
    await assert.rejects(copyStore(source, target, { onProgress }), /cut short/u);
    await refuses(open(target), 'misconfigured', /has not been finished/u);
    const file = sqlite();
    await assert.rejects(copyStore(source, file, { onProgress }), /cut short/u);
    for (const place of [target, file]) {
      assert.ok(await copyStore(source, place));
      await using store = await open(place);
      assert.equal((await store.listCollections()).length, 3);
    }
  });

  test('a store that is open on the empty database cannot write into a copy', async () => {
    const source = await filled(sqlite());
    const target = mongodb();
    await using early = await openMongoStore({ ...target, writeTimeoutMs: 500 });
    let outcome: Promise<unknown> | undefined;
    const onProgress = async () => {
      outcome ??= write(early, create('x')).catch((thrown: { code: string }) => thrown.code);
      await outcome;
    };
    await copyStore(source, target, { onProgress });
    assert.equal(await outcome, 'unavailable');
    assert.ok((await write(early, create('y'))).clock.tick > 1_000_000);
  });
});
