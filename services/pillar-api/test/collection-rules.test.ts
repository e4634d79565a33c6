import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { decode, EVENTS_STREAM, zCloudEvent } from '@colonnade/contracts';
import { toPlain } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  type ApiWorld,
  assertProblem,
  etagOfAnswer,
  plain,
  readStream,
  sendPlain,
  startWorld,
} from './support.ts';

const DEBIAN = { field: 'os.name', op: 'eq', value: 'Debian' };

describe('collections with a rule', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld();
    await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
    for (const id of ['debian', 'edge', 'named']) {
      await sendPlain(world.admin, 'POST', '/collections', { id, name: id });
    }
  });
  after(() => world[Symbol.asyncDispose]());

  const send = async (method: string, url: string, body?: object, api = world.admin) => {
    const etag = (await world.admin.send('GET', url.replace(/\/rule$/u, ''))).headers.get('etag') ?? '';
    return await sendPlain(api, method, url, body, { 'if-match': etag });
  };
  const setRule = (id: string, rule: object, api = world.admin) =>
    send('PUT', `/collections/${id}/rule`, rule, api);
  const register = async (id: string, collections: string[] = []) => {
    const url = `/masters/m1/minions/${id}`;
    const there = (await world.admin.send('GET', url)).headers.get('etag');
    const condition: Record<string, string> =
      there === null ? { 'if-none-match': '*' } : { 'if-match': there };
    const answer = await sendPlain(world.admin, 'PUT', url, { collections }, condition);
    assert.ok(answer.status < 300, JSON.stringify(plain(answer)));
    return plain(answer);
  };
  const tell = (id: string, facts: object) =>
    sendPlain(world.admin, 'POST', '/inventories', { master: 'm1', minion_id: id, ...facts });
  const memberships = async (id: string) => {
    const { collections, rule_collections = [] } = plain(
      await world.admin.send('GET', `/masters/m1/minions/${id}`),
    );
    return { named: collections, ruled: rule_collections };
  };
  const members = async (collection: string) => {
    const answer = await world.admin.send('GET', `/masters/m1/minions?collection=${collection}`);
    return (plain(answer).items as { id: string }[]).map(({ id }) => id);
  };

  test('a rule that is set takes in all whose inventory satisfies it, and its end lets them go', async () => {
    await tell('web-1', { os: { name: 'Debian' }, roles: ['edge'] });
    await register('web-1', ['named']);
    await tell('db-1', { os: { name: 'AlmaLinux' } });
    await register('db-1');
    await register('mute-1');
    await tell('pending-1', { os: { name: 'Debian' } });
    const set = await setRule('debian', DEBIAN);
    assert.equal(set.status, 200);
    assert.deepEqual(plain(set).rule, DEBIAN);
    assert.deepEqual(await members('debian'), ['web-1']);
    assert.deepEqual(await memberships('web-1'), { named: ['named'], ruled: ['debian'] });
    // A rename keeps the rule.
    const renamed = await send('PATCH', '/collections/debian', { name: 'Debian' });
    assert.deepEqual(plain(renamed).rule, DEBIAN);
    await setRule('debian', { ...DEBIAN, op: 'ne' });
    assert.deepEqual(await members('debian'), ['db-1']);
    const ended = await send('DELETE', '/collections/debian/rule');
    assert.equal(plain(ended).rule, undefined);
    assert.deepEqual(await members('debian'), []);
  });

  test('an inventory, a registration and a membership by name change it at once', async () => {
    await setRule('debian', DEBIAN);
    await setRule('edge', { field: 'roles', op: 'eq', value: 'edge' });
    assert.deepEqual((await memberships('web-1')).ruled, ['debian', 'edge']);
    await tell('web-1', { os: { name: 'Ubuntu' }, roles: ['edge'] });
    assert.deepEqual((await memberships('web-1')).ruled, ['edge']);
    assert.deepEqual((await register('pending-1')).rule_collections, ['debian']);
    // By name it stays when the rule does not hold any more.
    assert.equal((await register('pending-1', ['debian'])).rule_collections, undefined);
    await tell('pending-1', { os: { name: 'OpenBSD' } });
    assert.deepEqual(await memberships('pending-1'), { named: ['debian'], ruled: [] });
    await register('pending-1');
    assert.deepEqual(await memberships('pending-1'), { named: [], ruled: [] });
  });

  test('each change of a membership is an event', async () => {
    await register('told-1');
    await tell('told-1', { os: { name: 'Debian' }, roles: ['edge'] });
    await tell('told-1', { os: { name: 'Debian' }, roles: ['edge'], hostname: 'same' });
    await tell('told-1', {});
    const told = await waitFor('the events', async () => {
      const messages = await readStream(world.bus, EVENTS_STREAM);
      const events = messages.map(({ data }) => decode(zCloudEvent, data));
      const mine = events.filter(({ subject }) => subject === '/masters/m1/minions/told-1');
      return mine.length === 6 ? mine : undefined;
    });
    const updates = told.filter(({ type }) => type === 'colonnade.minion.updated.v1');
    assert.deepEqual(
      updates.map(({ data }) => (toPlain(data) as { collections: string[] }).collections),
      [['debian', 'edge'], []],
    );
  });

  test('a rule that is none is refused, and nothing has changed', async () => {
    await tell('web-1', { os: { name: 'Debian' } });
    const before = plain(await world.admin.send('GET', '/collections/debian'));
    for (const bad of [{}, { field: 'kernel', op: 'exists' }, { ...DEBIAN, op: 'regex' }, { all: [] }]) {
      const answer = await setRule('debian', bad);
      assert.equal(answer.status, 422, JSON.stringify(plain(answer)));
    }
    const url = '/collections/debian/rule';
    assertProblem(await sendPlain(world.admin, 'PUT', url, DEBIAN), 428, 'precondition_required');
    const stale = { 'if-match': '"other"' };
    assertProblem(await sendPlain(world.admin, 'PUT', url, DEBIAN, stale), 412, 'precondition_failed');
    assert.deepEqual(plain(await world.admin.send('GET', '/collections/debian')), before);
    assertProblem(await send('DELETE', '/collections/debian'), 409, 'conflict');
  });

  test('it takes rights on all minions, since it chooses among all', async () => {
    const part = await world.scoped([{ role: 'editor', collections: ['debian'] }]);
    assertProblem(await setRule('debian', DEBIAN, part), 403, 'forbidden');
    const viewer = await world.as(['viewer']);
    assertProblem(await setRule('debian', DEBIAN, viewer), 403, 'forbidden');
    const editor = await world.as(['editor']);
    assert.equal((await setRule('debian', DEBIAN, editor)).status, 200);
  });

  test('rules and inventories that change at once leave what the last of both say', async () => {
    const names = ['race-1', 'race-2', 'race-3'];
    for (const name of names) await register(name);
    for (const os of ['Debian', 'Fedora', 'Debian']) {
      await Promise.all([
        setRule('debian', { ...DEBIAN, value: os }),
        ...names.map((name) => tell(name, { os: { name: 'Debian' } })),
      ]);
    }
    const found = await members('debian');
    assert.deepEqual(
      names.filter((name) => found.includes(name)),
      names,
    );
  });

  test('the ETag of a minion is that of all its memberships', async () => {
    await tell('web-1', { os: { name: 'Debian' } });
    const url = '/masters/m1/minions/web-1';
    const etag = etagOfAnswer(await world.admin.send('GET', url));
    await tell('web-1', { os: { name: 'Ubuntu' } });
    const late = await sendPlain(world.admin, 'PUT', url, { collections: [] }, { 'if-match': etag });
    assertProblem(late, 412, 'precondition_failed');
  });

  test('a rule goes with its collection: exported, imported with its members, kept, and taken away', async () => {
    const move = async (method: string, path: string, body?: string) => {
      const headers = { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/x-ndjson' };
      const answer = await fetch(new URL(path, world.api.url), {
        method,
        headers,
        ...(body ? { body } : {}),
      });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      return text;
    };
    const ruleOf = async (id: string) => plain(await world.admin.send('GET', `/collections/${id}`)).rule;
    const all = { all: [DEBIAN, { field: 'properties.load', op: 'eq', value: 1.5 }] };
    await sendPlain(world.admin, 'POST', '/collections', { id: 'carried', name: 'carried' });
    assert.equal((await setRule('carried', all)).status, 200);
    await tell('carried-1', { os: { name: 'Debian' }, properties: { load: 1.5 } });
    await register('carried-1');
    const lines = (await move('GET', '/export?format=json')).split('\n');
    const line = lines.find((one) => one.includes('"id":"carried"')) ?? '';
    assert.deepEqual(JSON.parse(line).rule, all);
    const text = await move('GET', '/export?format=yaml');
    assert.match(text, /id: carried\n(?:.*\n)*?rule:\n/u);
    const put = async (record: object) => {
      const done = JSON.parse(await move('POST', '/import', JSON.stringify(record)));
      return done.counts.collections as { updated: number; unchanged: number };
    };
    assert.equal((await put(JSON.parse(line))).unchanged, 1);
    // Left out it stays; null takes it away, and the members with it; then it comes back as it was exported.
    await put({ kind: 'collection', id: 'carried', name: 'renamed' });
    assert.deepEqual(await ruleOf('carried'), all);
    assert.deepEqual(await members('carried'), ['carried-1']);
    assert.equal((await put({ kind: 'collection', id: 'carried', name: 'renamed', rule: null })).updated, 1);
    assert.equal(await ruleOf('carried'), undefined);
    assert.deepEqual(await members('carried'), []);
    await put(JSON.parse(line));
    assert.deepEqual(await ruleOf('carried'), all);
    assert.deepEqual(await members('carried'), ['carried-1']);
    await put({ kind: 'collection', id: 'carried-2', name: 'new', rule: DEBIAN });
    assert.ok((await members('carried-2')).includes('carried-1'));
  });

  test('a rule that is none is refused with its record', async () => {
    const body = (rule: unknown) =>
      JSON.stringify({ kind: 'collection', id: 'debian', name: 'debian', rule });
    const refused = async (text: string) => {
      const headers = { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/x-ndjson' };
      const answer = await fetch(new URL('/import', world.api.url), { method: 'POST', headers, body: text });
      return [answer.status, await answer.text()] as const;
    };
    const before = plain(await world.admin.send('GET', '/collections/debian'));
    for (const rule of ['web', {}, { field: 'kernel', op: 'exists' }, { all: [] }]) {
      const [status, text] = await refused(body(rule));
      assert.equal(status, 422, text);
      assert.match(text, /line 1: rule.*nothing was imported/u);
    }
    assert.deepEqual(plain(await world.admin.send('GET', '/collections/debian')), before);
  });
});
