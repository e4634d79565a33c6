import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import { type EstateStore, type ImportChange, openMongoStore } from '@colonnade/estate-store';
import { MongoClient } from 'mongodb';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

/** The switch of an import is the one long transaction on MongoDB, and others write meanwhile. */

const ROWS = 400;
const root = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
const create = (pid: string) =>
  ({ kind: 'pillar.create', record: { ...root, pid, name: pid, value: 1n, isSecret: false } }) as const;

async function stage(store: EstateStore, id: string): Promise<void> {
  for (let start = 0; start < ROWS; start += 100) {
    const changes: ImportChange[] = Array.from({ length: 100 }, (_, n) => create(`${id}${start + n}`));
    await store.stageImport(id, changes);
  }
}

describe('an import on MongoDB', { skip: await skipWithoutMongo() }, () => {
  let mongo: TestMongo;
  before(async () => {
    mongo = await mongoForTests();
  });
  after(() => mongo?.[Symbol.asyncDispose]());

  const place = () => {
    const { url, user, password } = mongo;
    return { url, user, password, database: mongo.freshDatabase() };
  };

  test('comes to its end though another process writes all the time', { timeout: 240_000 }, async () => {
    const options = place();
    await using store = await openMongoStore(options);
    await using other = await openMongoStore(options);
    await stage(store, 'i');
    let written = 0;
    let isOver = false;
    const writing = (async () => {
      for (let n = 0; !isOver; n++) {
        try {
          await other.write({ mutations: [create(`w${n}`)], events: [], by: 'eve', atMs: 1 });
          written += 1;
        } catch (thrown) {
          // It waits for the import no longer than for anything else.
          assert.ok(thrown instanceof ColonnadeError && thrown.code === 'unavailable', String(thrown));
        }
        await setImmediate();
      }
    })();
    const before = written;
    const { clock } = await store.applyImport('i', { changes: ROWS, by: 'ada', atMs: 1, events: [] });
    isOver = true;
    await writing;
    assert.ok(written > before && clock.tick > 1, `${written} writes, tick ${clock.tick}`);
    const { rows } = await store.listPillars({ tgtTypes: ['root'] }, { after: undefined, limit: 500 });
    assert.equal(rows.filter(({ tick }) => tick === clock.tick).length, ROWS);
    await other.write({ mutations: [create('last')], events: [], by: 'eve', atMs: 1 });
  });

  test('killed in its switch leaves nothing, and others go on', { timeout: 240_000 }, async () => {
    const options = place();
    await using store = await openMongoStore(options);
    const auth = { username: options.user ?? '', password: options.password ?? '' };
    await using client = new MongoClient(options.url, options.user === undefined ? {} : { auth });
    const writers = client.db(options.database).collection('colonnade_writers');
    const env = { ...process.env, COLONNADE_TEST_IMPORT: JSON.stringify({ options, rows: ROWS }) };
    const script = new URL('./mongo-import-writer.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [script], { env, stdio: 'inherit' });
    const inSwitch = { held_until: { $gt: new Date() } };
    await waitFor('its switch', async () => (await writers.countDocuments(inSwitch)) > 0, {
      limitMs: 120_000,
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { rows } = await store.listPillars({ tgtTypes: ['root'] }, { after: undefined, limit: 500 });
    assert.deepEqual(rows, []);
    const clock = await waitFor(
      'a write after it',
      () =>
        store.write({ mutations: [create('next')], events: [], by: 'eve', atMs: 1 }).then(
          (result) => result.clock,
          () => undefined,
        ),
      { limitMs: 60_000 },
    );
    assert.equal(clock.tick, 1);
    assert.equal(await store.sweepImports(-60_000), 1);
  });
});
