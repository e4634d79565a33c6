import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, decode, EVENTS_STREAM, zCloudEvent } from '@colonnade/contracts';
import { type EstateStore, openSqliteStore } from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';
import { type RealBus, startRealBus } from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { RELAY_LEASE, type Relay, startRelay } from '../src/relay.ts';
import { type ApiWorld, plain, readStream, sendPlain, startWorld } from './support.ts';

/** Every event in the stream: `[clock, index]`, in the order of the stream. Asserts that no id is there twice. */
async function published(bus: RealBus): Promise<[number, number][]> {
  const events = (await readStream(bus, EVENTS_STREAM)).map((m) => decode(zCloudEvent, m.data));
  assert.equal(new Set(events.map((e) => e.id)).size, events.length, 'an event is there twice');
  return events.map((e) => [Number(e.clock), Number(e.id.split('.').at(-1))]);
}

function assertInOrder(seen: readonly [number, number][]): void {
  const sorted = seen.toSorted(([a, i], [b, j]) => a - b || i - j);
  assert.deepEqual(seen, sorted, 'not in the order of the clock');
}

describe('the relay', () => {
  let bus: RealBus;
  let store: EstateStore;
  let scope: AsyncDisposableStack;
  let expected: number;

  before(async () => {
    bus = await startRealBus();
  });
  after(() => bus[Symbol.asyncDispose]());
  beforeEach(async () => {
    scope = new AsyncDisposableStack();
    const dir = scope.use(await tempDir('relay'));
    store = scope.use(await openSqliteStore({ path: path.join(dir.path, 'estate.sqlite') }));
    expected = (await published(bus)).length;
  });
  afterEach(() => scope.disposeAsync());

  const log = () => {
    const told = { leads: [] as (number | undefined)[], failures: [] as string[], relayed: 0, duplicates: 0 };
    const events = {
      relayed: (e: { duplicate: boolean }) => {
        told.relayed += 1;
        if (e.duplicate) told.duplicates += 1;
      },
      relayFailed: (e: { error: { code: string } }) => void told.failures.push(e.error.code),
      relayLeads: (e: { fence: number | undefined }) => void told.leads.push(e.fence),
      outboxSeen: () => {},
    };
    return { told, events };
  };

  async function relay(through?: Pick<Bus, 'publishDurable' | 'isConnected'>, holder = randomUUID()) {
    const { told, events } = log();
    const api = through ?? (await bus.as('pillar-api'));
    const started: Relay = startRelay({ store, bus: api, events, holder, pollMs: 20, leaseMs: 10_000 });
    scope.use(started);
    return { started, told };
  }

  /** One write with so many events. */
  async function write(count: number): Promise<void> {
    const events = Array.from({ length: count }, (_, i) => ({
      type: 'pillar.updated',
      subject: `/pillars/${i}`,
      data: fromPlain({ i }),
    }));
    await store.write({ mutations: [], events, by: 'test', atMs: Date.now() });
    expected += count;
  }

  const arrived = () =>
    waitFor(
      'all events',
      async () => (await store.readOutbox(1)).length === 0 && (await published(bus)).length === expected,
    );
  /** Those of the store of this test. */
  const own = async (from: number) => (await published(bus)).slice(from);

  test('publishes in the order of the clock, each event once, and empties the outbox', async () => {
    const from = expected;
    const { started, told } = await relay();
    for (let i = 0; i < 120; i += 1) {
      await write(1 + (i % 3));
      started.wake();
    }
    await arrived();
    assertInOrder(await own(from));
    assert.equal(told.duplicates, 0);
  });

  test('publishes what is there before it stops', async () => {
    const from = expected;
    const { started } = await relay();
    await write(1);
    started.wake();
    await waitFor('its lease', async () => (await store.readOutbox(1)).length === 0);
    for (let i = 0; i < 50; i += 1) await write(3);
    await started[Symbol.asyncDispose]();
    assert.equal((await store.readOutbox(1)).length, 0);
    assertInOrder(await own(from));
    assert.equal((await own(from)).length, 151);
  });

  test('of four relays on one store one publishes; when it stops another goes on', async () => {
    const from = expected;
    const relays = await Promise.all([relay(), relay(), relay(), relay()]);
    for (let i = 0; i < 60; i += 1) await write(2);
    await arrived();
    const leaders = relays.filter((r) => r.told.relayed > 0);
    assert.equal(leaders.length, 1);
    await leaders[0]?.started[Symbol.asyncDispose]();
    for (let i = 0; i < 20; i += 1) await write(1);
    await arrived();
    assertInOrder(await own(from));
    assert.equal(relays.filter((r) => r.told.relayed > 0).length, 2);
    assert.equal(
      relays.reduce((sum, r) => sum + r.told.duplicates, 0),
      0,
    );
    const fences = relays.flatMap((r) => r.told.leads).filter((fence) => fence !== undefined);
    assert.equal(new Set(fences).size, fences.length, 'a fence was given twice');
  });

  test('an acknowledgement that is lost leads to the same message again, which the stream drops', async () => {
    const from = expected;
    const api = await bus.as('pillar-api');
    let lost = 0;
    const { started, told } = await relay({
      isConnected: () => api.isConnected(),
      async publishDurable(message, call) {
        const ack = await api.publishDurable(message, call);
        if (lost < 3 && !ack.duplicate) {
          lost += 1;
          throw new ColonnadeError('bus_unavailable', 'the acknowledgement got lost');
        }
        return ack;
      },
    });
    await write(5);
    started.wake();
    await arrived();
    assertInOrder(await own(from));
    assert.deepEqual([told.duplicates, told.failures.length], [3, 3]);
  });

  test('an event that cannot be stored holds up those behind it, and none is passed over', async () => {
    const from = expected;
    const api = await bus.as('pillar-api');
    let open = false;
    const { started, told } = await relay({
      isConnected: () => open && api.isConnected(),
      publishDurable: (message, call) => api.publishDurable(message, call),
    });
    await write(3);
    started.wake();
    await waitFor('failures', () => told.failures.length >= 2);
    assert.equal((await store.readOutbox(10)).length, 3);
    open = true;
    await arrived();
    assertInOrder(await own(from));
  });

  test('a relay whose lease was taken drops nothing', async () => {
    const api = await bus.as('pillar-api');
    const [holder, usurper] = [randomUUID(), randomUUID()];
    let usurped = false;
    const through: Pick<Bus, 'publishDurable' | 'isConnected'> = {
      isConnected: () => true,
      async publishDurable(message, call) {
        const ack = await api.publishDurable(message, call);
        if (usurped) return ack;
        usurped = true;
        // As after a long pause: the lease ran out, somebody else has it with a higher fence.
        await store.releaseLease(RELAY_LEASE, holder);
        assert.ok(await store.acquireLease(RELAY_LEASE, usurper, 60_000));
        return ack;
      },
    };
    const { started, told } = await relay(through, holder);
    await write(2);
    started.wake();
    await waitFor('the conflict', () => told.failures.includes('conflict'));
    assert.equal((await store.readOutbox(10)).length, 2);
    await store.releaseLease(RELAY_LEASE, usurper);
    await arrived();
    assert.equal(told.duplicates, 2);
  });

  test('a NATS that is killed and comes back loses nothing and repeats nothing', async () => {
    const from = expected;
    const { started } = await relay();
    for (let i = 0; i < 100; i += 1) {
      await write(1);
      started.wake();
      if (i === 50) await bus.nats.kill('SIGKILL');
    }
    await bus.nats.restart();
    await arrived();
    assertInOrder(await own(from));
  });
});

describe('the relay of processes that are killed', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld({ env: { RELAY_LEASE_MS: '1000', RELAY_POLL_MS: '50' } });
  });
  after(() => world[Symbol.asyncDispose]());

  /** Writes until the process is gone; returns the ticks that were acknowledged. */
  async function writeUntilGone(names: string): Promise<number[]> {
    const ticks: number[] = [];
    for (let i = 0; ; i += 1) {
      const body = { tgt_type: 'root', name: `${names}-${i}`, value: i };
      const answer = await sendPlain(world.admin, 'POST', '/pillars', body).catch(() => undefined);
      if (answer?.status !== 201) return ticks;
      ticks.push(Number(plain(answer).clock));
    }
  }

  test('kill -9 in the middle of writes: every acknowledged write has its event, once, in order', async () => {
    const acknowledged: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      const writing = writeUntilGone(`killed-${round}`);
      const from = (await published(world.bus)).length;
      await waitFor('some events', async () => (await published(world.bus)).length > from + 15);
      await world.api.kill('SIGKILL');
      acknowledged.push(...(await writing));
      await world.api.restart();
    }
    assert.ok(acknowledged.length > 20);
    const seen = await waitFor('the events of all acknowledged writes', async () => {
      const all = await published(world.bus);
      const ticks = new Set(all.map(([tick]) => tick));
      return acknowledged.every((tick) => ticks.has(tick)) ? all : undefined;
    });
    assertInOrder(seen);
  });

  test('a relay that is stopped for longer than its lease does not disturb the one that took over', async () => {
    const second = await world.startApi();
    const write = (name: string, url: string) =>
      fetch(new URL('/pillars', url), {
        method: 'POST',
        headers: { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ tgt_type: 'root', name, value: true }),
      });
    const leaderIs = async (url: string) => {
      const response = await fetch(new URL('/metrics', url), {
        headers: { authorization: `Bearer ${world.adminToken}` },
      });
      return /colonnade_api_relay_leading\{[^}]*\} 1/u.test(await response.text());
    };
    await write('who-leads', world.api.url);
    await waitFor('a leader', async () => (await leaderIs(world.api.url)) || (await leaderIs(second.url)));
    const [leader, other] = (await leaderIs(world.api.url)) ? [world.api, second] : [second, world.api];
    const before = (await published(world.bus)).length;
    await leader.kill('SIGSTOP');
    for (let i = 0; i < 10; i += 1) assert.equal((await write(`over-${i}`, other.url)).status, 201);
    await waitFor('the other to take over', async () => (await published(world.bus)).length >= before + 10);
    await leader.kill('SIGCONT');
    // Its first requests may still fall into timeouts that ran out while it stood still; then it says 503, as it should.
    await waitFor(
      'the one that was stopped to be itself again',
      async () => (await write('again', leader.url)).status !== 503,
    );
    for (let i = 0; i < 10; i += 1) assert.equal((await write(`back-${i}`, leader.url)).status, 201);
    await waitFor('the rest', async () => (await published(world.bus)).length >= before + 21);
    assertInOrder(await published(world.bus));
  });
});
