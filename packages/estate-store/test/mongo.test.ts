import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { apiRole, openMongoReader, openMongoStore } from '@colonnade/estate-store';
import { type EstateHarness, runEstateContract } from '@colonnade/estate-store/contract-suite';
import { MongoClient } from 'mongodb';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';
import { leavesOf, recordQueries } from './mongo-queries.ts';

const WRITER = new URL('./contract-writer-mongo.ts', import.meta.url).pathname;
const skip = await skipWithoutMongo();

let mongo: TestMongo | undefined;
const queries = recordQueries();
after(() => mongo?.[Symbol.asyncDispose]());

/** One server for the file, a database for each test. */
async function createHarness(): Promise<EstateHarness> {
  mongo ??= await mongoForTests();
  const { url, user, password } = mongo;
  const options = { url, user, password, database: mongo.freshDatabase() };
  const spawnWriter = () => {
    const env = { ...process.env, COLONNADE_TEST_STORE: JSON.stringify(options) };
    return spawn(process.execPath, [WRITER], { stdio: ['ignore', 'pipe', 'inherit'], env });
  };
  return {
    openStore: (more) => openMongoStore({ ...options, ...more, onCommand: queries.record }),
    openReader: () => openMongoReader({ ...options, onCommand: queries.record }),
    spawnWriter,
    [Symbol.asyncDispose]: async () => {},
  };
}

runEstateContract('MongoDB', createHarness, { skip });

test('of all the queries above, none reads a whole collection', { skip }, async () => {
  assert.ok(mongo !== undefined);
  await using client = new MongoClient(mongo.url, {
    ...(mongo.user === undefined ? {} : { auth: { username: mongo.user, password: mongo.password ?? '' } }),
  });
  const asked = queries.all();
  assert.ok(asked.length > 40, `only ${asked.length} queries were seen`);
  for (const { database, label, find } of asked) {
    const plan = await client.db(database).command({ explain: find, verbosity: 'queryPlanner' });
    const leaves = leavesOf(plan.queryPlanner.winningPlan);
    assert.ok(leaves.length > 0, label);
    for (const stage of leaves) assert.match(stage, /^(?:EXPRESS_)?(?:CLUSTERED_)?IXSCAN$|^IDHACK$/u, label);
  }
});

test('all of it is within the rights of apiRole, and it has none that nothing above made use of', {
  skip,
}, () => {
  const granted = apiRole('x').privileges.flatMap(({ resource, actions }) =>
    actions
      .filter((action) => ['find', 'insert', 'update', 'remove'].includes(action))
      .map((action) => `${resource.collection} ${action}`),
  );
  assert.deepEqual(queries.actions(), granted.sort());
});
