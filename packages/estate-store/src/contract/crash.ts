import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { toPlain } from '@colonnade/value';
import type { Clock, EstateReader, EstateStore } from '../port.ts';
import { LANES, leftOf, prepareLanes, rightOf, stepEnv, stepPid } from './crash-writer.ts';
import * as h from './harness.ts';

const KILLS = 6;

type Ack = { lane: number; step: number; tick: number };

async function* acksOf(child: ChildProcess): AsyncGenerator<Ack> {
  assert.ok(child.stdout !== null);
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line of a killed process may be cut off.
    const match = /^(\d+) (\d+) (\d+)$/u.exec(line);
    if (match !== null) yield { lane: Number(match[1]), step: Number(match[2]), tick: Number(match[3]) };
  }
}

/** Kills after so many acknowledgements; gives all that came, also those on their way when it was killed. */
async function killAfter(child: ChildProcess, count: number): Promise<Ack[]> {
  const exited = once(child, 'exit');
  const acks: Ack[] = [];
  for await (const ack of acksOf(child)) {
    acks.push(ack);
    if (acks.length === count) child.kill('SIGKILL');
  }
  await exited;
  assert.equal(child.signalCode, 'SIGKILL', 'the writer ran until it was killed');
  return acks;
}

/** Every acknowledged step is whole, nothing is half, and clock, rows, versions, events and changes agree. */
async function checkEstate(
  store: EstateStore,
  acked: ReadonlyMap<number, number>,
  since: Clock,
): Promise<void> {
  const scopes = LANES.flatMap((lane) => [leftOf(lane).pillarenv, rightOf(lane).pillarenv, stepEnv(lane)]);
  const seen = await h.look(store, { since, scopes });
  const outbox = await store.readOutbox(100_000);
  assert.deepEqual(
    outbox.map(({ tick }) => tick),
    Array.from({ length: seen.clock.tick }, (_, i) => i + 1),
  );
  assert.deepEqual(new Set(seen.changed), new Set(scopes.map((scope) => `scope:${scope}`)));
  for (const lane of LANES) {
    const steps = Number(seen.scopes.get(leftOf(lane).pillarenv)?.[0]?.value);
    const last = acked.get(lane) ?? 0;
    assert.ok(steps === last || steps === last + 1, `lane ${lane}: ${last} acknowledged, ${steps} there`);
    assert.equal(seen.scopes.get(rightOf(lane).pillarenv)?.[0]?.value, BigInt(steps));
    const numbers = Array.from({ length: steps }, (_, i) => i + 1);
    const pids = seen.scopes.get(stepEnv(lane))?.map(({ pid }) => pid);
    assert.deepEqual(pids?.toSorted(), numbers.map((i) => stepPid(lane, i)).sort());
    for (const { pid } of [leftOf(lane), rightOf(lane)]) {
      const versions = await store.listVersions(pid);
      assert.deepEqual(
        versions.map(({ value }) => value),
        [0n, ...numbers.map(BigInt)],
      );
      const events = outbox.filter(({ data }) => (toPlain(data) as { lane: number }).lane === lane);
      assert.deepEqual(
        versions.slice(1).map(({ tick }) => tick),
        events.map(({ tick }) => tick),
      );
    }
  }
}

export function testCrashes(create: h.CreateHarness): void {
  test('a writer killed with -9 at any moment loses nothing acknowledged and leaves nothing half', async () => {
    await using harness = await create();
    const acked = new Map<number, number>();
    const since = await (async () => {
      await using store = await harness.openStore();
      await prepareLanes(store);
      return (await h.look(store)).clock;
    })();
    for (let round = 0; round < KILLS; round++) {
      const count = 5 + Math.floor(Math.random() * 120);
      for (const { lane, step } of await killAfter(harness.spawnWriter(), count)) acked.set(lane, step);
      await using store = await harness.openStore();
      await checkEstate(store, acked, since);
      // What a kill left without an acknowledgement may be there: the next round counts from what is.
      for (const lane of LANES) acked.set(lane, Number((await store.getPillar(leftOf(lane).pid))?.value));
    }
  });

  test('a store and a reader that stay open go on after another writer was killed', async () => {
    await h.withStore(create, async (store, harness) => {
      await prepareLanes(store);
      await using reader = await harness.openReader();
      const acks = await killAfter(harness.spawnWriter(), 20);
      const { clock } = await h.look(reader);
      assert.ok(clock.tick >= Math.max(...acks.map(({ tick }) => tick)));
      assert.equal(await h.writeTick(store, h.createPillar('after')), clock.tick + 1);
      assert.equal((await h.look(reader)).clock.tick, clock.tick + 1);
    });
  });

  test('a reader sees what another process wrote as soon as that is acknowledged, and never half a batch', async () => {
    await h.withStore(create, async (store, harness) => {
      await prepareLanes(store);
      await using reader = await harness.openReader();
      const child = harness.spawnWriter();
      const exited = once(child, 'exit');
      let seen = 0;
      for await (const { lane, step, tick } of acksOf(child)) {
        if (seen++ >= 300) child.kill('SIGKILL');
        await checkFreshAndWhole(reader, lane, step, tick);
      }
      await exited;
      assert.ok(seen >= 300);
    });
  });
}

async function checkFreshAndWhole(
  reader: EstateReader,
  lane: number,
  step: number,
  tick: number,
): Promise<void> {
  const [left, right] = [leftOf(lane), rightOf(lane)];
  const seen = await h.look(reader, { scopes: [left.pillarenv, right.pillarenv, stepEnv(lane)] });
  const [a, b] = [seen.scopes.get(left.pillarenv)?.[0], seen.scopes.get(right.pillarenv)?.[0]];
  assert.ok(seen.clock.tick >= tick && Number(a?.value) >= step, 'as new as its acknowledgement');
  assert.deepEqual([b?.value, b?.tick], [a?.value, a?.tick], 'both scopes of a batch or none');
  const ticks = [...seen.scopes.values()].flat().map((pillar) => pillar.tick);
  assert.ok(Math.max(...ticks) <= seen.clock.tick, 'nothing newer than the clock it is given with');
  assert.equal(seen.scopes.get(stepEnv(lane))?.length, Number(a?.value));
}
