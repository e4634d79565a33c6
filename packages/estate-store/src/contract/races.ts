import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as h from './harness.ts';

const ROUNDS = 60;

export function testRaces(create: h.CreateHarness): void {
  test('of two writers with the same ETag on one pillar exactly one wins, every time', async () => {
    await h.withStore(create, async (store, harness) => {
      await using rival = await harness.openStore();
      let tick = await h.writeTick(store, h.createPillar('p1'));
      for (let round = 1; round <= ROUNDS; round++) {
        const outcomes = await Promise.allSettled([
          store.write(h.batch([h.updatePillar('p1', BigInt(round), tick)])),
          rival.write(h.batch([h.updatePillar('p1', -BigInt(round), tick)])),
        ]);
        const winner = h.assertOneWins(outcomes, 'precondition_failed');
        const pillar = await store.getPillar('p1');
        assert.equal(pillar?.value, winner === 0 ? BigInt(round) : -BigInt(round));
        assert.equal(pillar?.tick, tick + 1);
        tick += 1;
      }
      assert.equal((await store.listVersions('p1')).length, ROUNDS + 1);
      assert.equal((await h.look(store)).clock.tick, tick);
    });
  });

  test('of two writers on one unique key exactly one wins, every time', async () => {
    await h.withStore(create, async (store, harness) => {
      await using rival = await harness.openStore();
      for (let round = 1; round <= ROUNDS; round++) {
        const name = `n${round}`;
        const outcomes = await Promise.allSettled([
          store.write(h.batch([h.createPillar(`a${round}`, { name })], [h.event({ round })])),
          rival.write(h.batch([h.createPillar(`b${round}`, { name })], [h.event({ round })])),
        ]);
        const winner = h.assertOneWins(outcomes, 'already_exists');
        const found = await store.findPillar('root', 'root', name, 'base');
        assert.equal(found?.pid, `${winner === 0 ? 'a' : 'b'}${round}`);
      }
      assert.equal((await store.readOutbox(1000)).length, ROUNDS);
      assert.equal((await h.look(store)).clock.tick, ROUNDS);
    });
  });

  test('many writes at once through two stores each get a tick of their own', async () => {
    await h.withStore(create, async (store, harness) => {
      await using rival = await harness.openStore();
      const writes = Array.from({ length: 200 }, (_, i) =>
        (i % 2 === 0 ? store : rival).write(h.batch([h.createPillar(`p${i}`)], [h.event({ i })])),
      );
      const ticks = (await Promise.all(writes)).map(({ clock }) => clock.tick);
      assert.deepEqual(
        ticks.toSorted((a, b) => a - b),
        Array.from({ length: 200 }, (_, i) => i + 1),
      );
      assert.deepEqual(
        (await store.readOutbox(1000)).map(({ tick }) => tick),
        ticks.toSorted((a, b) => a - b),
      );
    });
  });

  test('two moves that together would make a cycle do not both happen', async () => {
    await h.withStore(create, async (store, harness) => {
      await using rival = await harness.openStore();
      for (let round = 0; round < 20; round++) {
        const [a, b] = [`a${round}`, `b${round}`];
        await h.writeTick(store, h.putCollection(a), h.putCollection(b));
        const under = (id: string, parentId: string) => ({
          ...h.putCollection(id, { parentId }),
          expect: undefined,
        });
        const outcomes = await Promise.allSettled([
          store.write(h.batch([under(a, b)])),
          rival.write(h.batch([under(b, a)])),
        ]);
        h.assertOneWins(outcomes, 'conflict');
      }
    });
  });

  test('a pillar and the deletion of its collection do not both happen', async () => {
    await h.withStore(create, async (store, harness) => {
      await using rival = await harness.openStore();
      for (let round = 0; round < 20; round++) {
        const id = `c${round}`;
        await h.writeTick(store, h.putCollection(id));
        const pillar = { tgtType: 'collection', tgtId: id, pillarenv: `collection:${id};user:ada` } as const;
        const [put, deletion] = await Promise.allSettled([
          store.write(h.batch([h.createPillar(`p${round}`, pillar)])),
          rival.write(h.batch([{ kind: 'collection.delete', id, expect: undefined }])),
        ]);
        assert.notEqual(put.status, deletion.status);
        assert.equal((await store.getCollection(id)) === undefined, put.status === 'rejected');
      }
    });
  });
}
