import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { ColonnadeError } from '@colonnade/contracts';
import {
  type EstateReader,
  type EstateStore,
  openMongoReader,
  openMongoStore,
} from '@colonnade/estate-store';
import { mongoForTests, skipWithoutOwnMongo, type TestMongo } from '../../../test/support/mongo.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

function create(store: EstateStore, pid: string) {
  const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
  const record = { ...target, pid, name: pid, value: 'x', isSecret: false };
  const event = { type: 't', subject: 's', data: pid };
  return store.write({ mutations: [{ kind: 'pillar.create', record }], events: [event], by: 'ada', atMs: 1 });
}

const look = (reader: EstateReader) =>
  reader.snapshot({ since: undefined, scopes: ['base'], collections: false, masters: [], minions: [] });

const pidsOf = async (reader: EstateReader) => (await look(reader)).scopes.get('base')?.map(({ pid }) => pid);

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing was refused',
    (thrown: ColonnadeError) => thrown.code,
  );

describe('a server that comes and goes', { skip: await skipWithoutOwnMongo() }, () => {
  let mongo: TestMongo;
  let options: { url: string; database: string; operationTimeoutMs: number; selectTimeoutMs: number };

  beforeEach(async () => {
    mongo = await mongoForTests();
    const timeouts = { operationTimeoutMs: 1000, selectTimeoutMs: 1000 };
    options = { url: mongo.url, database: mongo.freshDatabase(), ...timeouts };
  });
  afterEach(() => mongo[Symbol.asyncDispose]());

  const kill = async () => mongo.server?.kill('SIGKILL');
  const restart = async () => mongo.server?.restart();

  test('kill -9 of the server loses nothing acknowledged, and the open store goes on', async () => {
    await using store = await openMongoStore(options);
    await using reader = await openMongoReader(options);
    const acked: string[] = [];
    for (let round = 0; round < 3; round++) {
      let stop = false;
      const write = async (lane: number) => {
        for (let i = 0; !stop; i++) {
          const pid = `p-${round}-${lane}-${i}`;
          await create(store, pid);
          acked.push(pid);
        }
      };
      const lanes = Promise.allSettled([write(0), write(1), write(2)]);
      const before = acked.length;
      await waitFor('some writes', () => acked.length > before + 20);
      await kill();
      const refused = (await lanes).map((lane) => lane.status === 'rejected' && lane.reason.code);
      stop = true;
      assert.deepEqual(refused, ['unavailable', 'unavailable', 'unavailable']);
      await restart();
      const { clock } = await waitFor('a snapshot', () => look(reader), { limitMs: 20_000 });
      const there = new Set(await pidsOf(store));
      assert.deepEqual(
        acked.filter((pid) => !there.has(pid)),
        [],
      );
      assert.equal(clock.tick, there.size, 'one tick for each write that is there');
      assert.equal((await store.readOutbox(1000)).length, there.size);
    }
  });

  test('a server that is stopped makes calls unavailable in bounded time; then all goes on', async () => {
    await using store = await openMongoStore({ ...options, writeTimeoutMs: 1000 });
    await using reader = await openMongoReader(options);
    await create(store, 'p1');
    await look(reader);
    await mongo.server?.kill('SIGSTOP');
    const startedMs = performance.now();
    const calls = [create(store, 'p2'), look(reader), reader.ping(), store.getPillar('p1')];
    const codes = await Promise.all(calls.map(codeOf));
    assert.deepEqual(new Set(codes), new Set(['unavailable']));
    assert.ok(performance.now() - startedMs < 15_000, `${performance.now() - startedMs} ms`);
    await mongo.server?.kill('SIGCONT');
    await waitFor('a write', async () => (await codeOf(create(store, 'p3'))) !== 'unavailable');
    const pids = await waitFor('a snapshot', () => pidsOf(reader));
    assert.ok(pids.includes('p1') && pids.includes('p3'));
  });

  test('without a server a store does not open; a reader does, and works once there is one', async () => {
    await kill();
    assert.equal(await codeOf(openMongoStore(options)), 'unavailable');
    await using reader = await openMongoReader(options);
    assert.equal(await codeOf(reader.ping()), 'unavailable');
    await restart();
    await using store = await openMongoStore(options);
    await create(store, 'p1');
    assert.deepEqual(await pidsOf(reader), ['p1']);
  });
});
