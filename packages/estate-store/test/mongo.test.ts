import { spawn } from 'node:child_process';
import { after } from 'node:test';
import { openMongoReader, openMongoStore } from '@colonnade/estate-store';
import { type EstateHarness, runEstateContract } from '@colonnade/estate-store/contract-suite';
import { mongoForTests, skipWithoutMongo, type TestMongo } from '../../../test/support/mongo.ts';

const WRITER = new URL('./contract-writer-mongo.ts', import.meta.url).pathname;

let mongo: TestMongo | undefined;
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
    openStore: (more) => openMongoStore({ ...options, ...more }),
    openReader: () => openMongoReader(options),
    spawnWriter,
    [Symbol.asyncDispose]: async () => {},
  };
}

runEstateContract('MongoDB', createHarness, { skip: await skipWithoutMongo() });
