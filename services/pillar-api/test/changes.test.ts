import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, auditRecords, plain, sendPlain, startWorld } from './support.ts';

type Event = { name: string; id: string; data: { clock?: number; changed?: string[]; code?: string } };
type Listener = AsyncDisposable & { events: Event[]; ended: Promise<void>; auditId: string | null };

/** Reads server-sent events from a real connection, as they come. */
async function listen(url: string, token: string, lastEventId?: string): Promise<Listener> {
  const stop = new AbortController();
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(new URL('/changes', url), {
    headers: lastEventId === undefined ? headers : { ...headers, 'last-event-id': lastEventId },
    signal: stop.signal,
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/u);
  const events: Event[] = [];
  const read = async () => {
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      events.push(...parts.filter((part) => !part.startsWith(':')).map(parse));
    }
  };
  const ended = read().catch(() => {});
  return {
    ...{ events, ended, auditId: response.headers.get('audit-id') },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

function parse(part: string): Event {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'mu').exec(part)?.[1] ?? '';
  return { name: field('event'), id: field('id'), data: JSON.parse(field('data')) as Event['data'] };
}

const keysOf = ({ events }: Listener) => events.flatMap(({ data }) => data.changed ?? []);

describe('the stream of changes', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld({ env: { CHANGES_POLL_MS: '20' } });
    await sendPlain(world.admin, 'POST', '/collections', { id: 'web', name: 'Web' });
    await sendPlain(world.admin, 'POST', '/collections', { id: 'db', name: 'Db' });
  });
  after(() => world[Symbol.asyncDispose]());

  const write = (name: string, where: object = { tgt_type: 'root' }, more: object = {}) =>
    sendPlain(world.admin, 'POST', '/pillars', { ...where, name, value: 'v4lue', ...more });
  const inCollection = (collection_id: string) => ({ tgt_type: 'collection', collection_id });
  const until = (condition: () => boolean) => waitFor('the events', condition);

  test('a write is told to every reader, in every process, and no value is', async () => {
    const second = await world.startApi();
    await using here = await listen(world.api.url, world.adminToken);
    await using there = await listen(second.url, world.adminToken);
    await write('told');
    await write('told_secret', inCollection('web'), { is_secret: true });
    for (const reader of [here, there]) {
      await until(() => keysOf(reader).some((key) => key.startsWith('scope:collection:web')));
      assert.ok(keysOf(reader).includes('scope:base'));
      assert.deepEqual([reader.events[0]?.name, reader.events[0]?.data], ['ready', {}]);
      assert.ok(!JSON.stringify(reader.events).includes('v4lue'));
      const clocks = reader.events.flatMap(({ data }) => data.clock ?? []);
      assert.deepEqual(
        clocks,
        [...clocks].sort((a, b) => a - b),
      );
    }
  });

  test('whoever goes on after an event misses nothing, in another process too, also of what was written meanwhile', async () => {
    const second = await world.startApi();
    let last = '';
    {
      await using first = await listen(world.api.url, world.adminToken);
      await write('before');
      await until(() => keysOf(first).includes('scope:base'));
      last = first.events.at(-1)?.id ?? '';
    }
    await write('meanwhile', inCollection('db'));
    const during = Promise.all(
      Array.from({ length: 20 }, (_, i) => write(`during_${i}`, inCollection('web'))),
    );
    await using again = await listen(second.url, world.adminToken, last);
    await during;
    await until(() => keysOf(again).some((key) => key.startsWith('scope:collection:web')));
    assert.ok(keysOf(again).some((key) => key.startsWith('scope:collection:db')));
    const now = await listen(world.api.url, world.adminToken);
    await until(() => now.events.length > 0);
    const tick = Number(now.events[0]?.id.split('.').at(-1));
    await now[Symbol.asyncDispose]();
    await until(() => Math.max(...again.events.flatMap(({ data }) => data.clock ?? [])) >= tick);
  });

  test('another life of the estate, or one that is over, is a reset; what is no id is refused', async () => {
    await using other = await listen(world.api.url, world.adminToken, 'another-life.3');
    await until(() => other.events.some(({ name }) => name === 'reset'));
    const bad = await world.admin.send('GET', '/changes', undefined, { 'last-event-id': 'no id' });
    assertProblem(bad, 400, 'bad_request', 'Last-Event-ID');
  });

  test('scoped roles hear of their part only', async () => {
    const body = { sub: 'sam', scoped_roles: [{ role: 'viewer', collections: ['web'] }] };
    const { token } = plain(await sendPlain(world.admin, 'POST', '/tokens', body)) as { token: string };
    await using sam = await listen(world.api.url, token);
    await write('hidden');
    await write('hidden', inCollection('db'));
    await sendPlain(world.admin, 'POST', '/masters', { id: 'hidden' });
    await write('shown', inCollection('web'));
    await until(() => keysOf(sam).length > 0);
    assert.ok(
      keysOf(sam).every((key) => key.startsWith('scope:collection:web')),
      String(keysOf(sam)),
    );
  });

  test('one caller has eight streams, and their places come back', async () => {
    const { token } = await world.tokenOf(['viewer'], 'greedy');
    await using stack = new AsyncDisposableStack();
    for (let i = 0; i < 8; i += 1) stack.use(await listen(world.api.url, token));
    const ask = () =>
      fetch(new URL('/changes', world.api.url), { headers: { authorization: `Bearer ${token}` } });
    const ninth = await ask();
    assert.equal(ninth.status, 429);
    await stack.disposeAsync();
    await waitFor('it', async () => {
      const again = await ask();
      await again.body?.cancel();
      return again.status === 200 || undefined;
    });
  });

  test('the record has the stage ResponseStarted while it goes on, and ends with it', async () => {
    const reader = await listen(world.api.url, world.adminToken);
    const stages = async () =>
      (await auditRecords(world.bus))
        .filter(({ auditID }) => auditID === reader.auditId)
        .map(({ stage }) => stage);
    await waitFor('it', async () => (await stages()).includes('ResponseStarted') || undefined);
    assert.ok(!(await stages()).includes('ResponseComplete'));
    await reader[Symbol.asyncDispose]();
    await waitFor('it', async () => (await stages()).includes('ResponseComplete') || undefined);
  });

  test('a process that stops ends its streams and says so', async () => {
    const third = await world.startApi();
    await using reader = await listen(third.url, world.adminToken);
    await until(() => reader.events.length > 0);
    await third.kill('SIGTERM');
    await reader.ended;
    assert.deepEqual(reader.events.at(-1)?.data, { code: 'unavailable' });
  });
});
