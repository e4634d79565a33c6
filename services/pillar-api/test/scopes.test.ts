import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiAnswer, ApiClient } from '@colonnade/embedded';
import { allRoutes } from '../src/routes/index.ts';
import { type ApiWorld, assertProblem, etagOfAnswer, plain, sendPlain, startWorld } from './support.ts';

/** Stands in everything that the scoped user must not see. */
const OUTSIDE = 'outsider';
const ROLES = ['viewer', 'editor', 'secret-reader'] as const;

/** What a route is asked with, where nothing and `{}` would be refused before anybody asks for rights. */
const BODIES: Readonly<Record<string, unknown>> = {
  'POST /pillars': { tgt_type: 'collection', collection_id: 'out', name: OUTSIDE, value: 1 },
  'PUT /pillars/:pid': { value: 2 },
  'POST /pillars/list': {},
  'POST /collections': { id: 'new', parent_id: 'out', name: OUTSIDE },
  'PATCH /collections/:id': { name: 'renamed' },
  'PUT /masters/:master/minions/:id': { collections: [] },
  'POST /tasks/templates': { id: 'new', name: OUTSIDE, schema: true },
  'PUT /tasks/templates/:tpl_id': { name: 'renamed', schema: true },
  'PUT /tasks/template/:tpl_id/defaults': { pillars: [{ name: OUTSIDE, value: 1 }] },
  'POST /tasks': { tpl_id: 'tpl', minions: [{ master: 'm1', minion_id: OUTSIDE }], pillars: [] },
  'POST /tasks/:task_id/state': { state: 'failed' },
  'POST /inventories': { master: 'm1', minion_id: OUTSIDE },
};

const textOf = (answer: ApiAnswer) => JSON.stringify(plain(answer));

describe('roles for a part of the estate', () => {
  let world: ApiWorld;
  /** May do all a scoped role allows, in the collection `in` and below. */
  let scoped: ApiClient;
  const pids = new Map<string, string>();
  let task: string;

  const make = async (body: Record<string, unknown>) => {
    const made = await sendPlain(world.admin, 'POST', '/pillars', body);
    assert.equal(made.status, 201, textOf(made));
    pids.set(String(body.name), String(plain(made).pid));
  };
  before(async () => {
    // Every route is denied here, several times.
    world = await startWorld({ env: { DENIALS_PER_MINUTE: '1000' } });
    const admin = (method: string, url: string, body: unknown, headers?: Record<string, string>) =>
      sendPlain(world.admin, method, url, body, headers);
    await admin('POST', '/collections', { id: 'out', name: OUTSIDE });
    await admin('POST', '/collections', { id: 'in', parent_id: 'out', name: 'inside' });
    await admin('POST', '/collections', { id: 'below', parent_id: 'in', name: 'inside' });
    await admin('POST', '/masters', { id: 'm1' });
    const fresh = { 'if-none-match': '*' };
    await admin('PUT', `/masters/m1/minions/${OUTSIDE}`, { collections: [] }, fresh);
    await admin('POST', '/inventories', { master: 'm1', minion_id: OUTSIDE });
    await make({ tgt_type: 'root', name: `${OUTSIDE}_root`, value: 1 });
    const minion = { tgt_type: 'minion', minion_id: OUTSIDE, master: 'm1' };
    await make({ ...minion, name: `${OUTSIDE}_minion`, value: 1 });
    await make({ tgt_type: 'collection', collection_id: 'out', name: OUTSIDE, value: 's', is_secret: true });
    await make({ tgt_type: 'collection', collection_id: 'below', name: 'inside', value: 1 });
    await admin('POST', '/tasks/templates', { id: 'tpl', name: OUTSIDE, schema: true });
    const targets = { tpl_id: 'tpl', minions: [{ master: 'm1', minion_id: OUTSIDE }] };
    task = String(
      plain(await admin('POST', '/tasks', { ...targets, pillars: [{ name: OUTSIDE, value: 1 }] })).id,
    );
    scoped = await world.scoped(ROLES.map((role) => ({ role, collections: ['in'] })));
  });
  after(() => world[Symbol.asyncDispose]());

  const fill = (url: string) =>
    url
      .replace(':pid', pids.get(OUTSIDE) ?? '')
      .replace(':master', 'm1')
      .replace('minions/:id', `minions/${OUTSIDE}`)
      .replace('collections/:id', 'collections/out')
      .replace('/changes', '/changes?once=true')
      .replace(':tpl_id', 'tpl')
      .replace(':task_id', task)
      .replace(/for-target$/u, `for-target?tgt_type=root&tgt_id=root&pillarenv=base`)
      .replace(/:[a-z_]+/gu, OUTSIDE);

  test('no route shows or changes anything outside of the scope', async () => {
    const routes = allRoutes({} as never);
    assert.ok(routes.some(({ scope }) => scope === 'target'));
    for (const { method, url, scope } of routes) {
      const route = `${method} ${url}`;
      const answer = await sendPlain(scoped, method, fill(url), BODIES[route], { 'if-match': '*' });
      if (scope === 'estate') assertProblem(answer, 403, 'forbidden');
      if (scope !== 'target') continue;
      if (route in BODIES && answer.status !== 200) assertProblem(answer, 403, 'forbidden');
      assert.ok(answer.status === 200 || answer.status >= 400, `${route}: ${answer.status}`);
      assert.ok(answer.status !== 500, `${route}: ${textOf(answer)}`);
      const shown = answer.status === 200 ? textOf(answer) : '';
      assert.ok(!shown.includes(OUTSIDE), `${route}: ${shown}`);
    }
    const root = await world.admin.send('GET', `/pillars/${pids.get(OUTSIDE)}`);
    assert.equal(root.status, 200, 'nothing was deleted');
  });

  test('pillars of root, minions and collections outside are refused one by one', async () => {
    for (const name of [OUTSIDE, `${OUTSIDE}_root`, `${OUTSIDE}_minion`]) {
      const url = `/pillars/${pids.get(name)}`;
      for (const [method, path, body] of [
        ['GET', url],
        ['PUT', url, { value: 2 }],
        ['DELETE', url],
        ['POST', `${url}/seal`],
        ['POST', `${url}/reveal`],
        ['POST', `${url}/unseal`],
      ] as const) {
        assertProblem(await sendPlain(scoped, method, path, body, { 'if-match': '*' }), 403, 'forbidden');
      }
      assertProblem(await scoped.send('GET', `${url}/versions`), 404, 'not_found');
    }
  });

  test('inside of the scope, and below it, everything the roles allow is allowed', async () => {
    const body = {
      tgt_type: 'collection',
      collection_id: 'below',
      name: 'mine',
      value: 's',
      is_secret: true,
    };
    const made = await sendPlain(scoped, 'POST', '/pillars', body);
    assert.equal(made.status, 201, textOf(made));
    const url = `/pillars/${plain(made).pid}`;
    assert.equal(plain(await scoped.send('POST', `${url}/reveal`)).value, 's');
    assert.equal((await scoped.send('GET', `${url}/versions`)).status, 200);
    const detail = plain(await scoped.send('GET', '/collections/below'));
    assert.deepEqual(
      (detail.ancestors as { id: string }[]).map(({ id }) => id),
      ['in'],
    );
    const removed = await scoped.send('DELETE', url, undefined, { 'if-match': etagOfAnswer(made) });
    assert.equal(removed.status, 204);
  });

  test('a collection cannot be moved out of the scope, and a minion not into a collection outside', async () => {
    const move = (parent_id: string | null) =>
      sendPlain(scoped, 'PATCH', '/collections/below', { parent_id }, { 'if-match': '*' });
    for (const parent of ['out', null]) assertProblem(await move(parent), 403, 'forbidden');
    assert.equal((await move('in')).status, 200);
    const fleet = await world.scoped([{ role: 'editor', tgt_types: ['minion'] }]);
    const put = (collections: string[]) =>
      sendPlain(fleet, 'PUT', `/masters/m1/minions/${OUTSIDE}`, { collections }, { 'if-match': '*' });
    assertProblem(await put(['out']), 403, 'forbidden');
    assert.equal((await put([])).status, 200);
  });

  test('prefixes of names hold for lists too', async () => {
    await make({ tgt_type: 'root', name: 'app_one', value: 1 });
    const app = await world.scoped([{ role: 'editor', name_prefixes: ['app_'] }]);
    const listed = plain(await sendPlain(app, 'POST', '/pillars/list', {})).items as { name: string }[];
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['app_one'],
    );
    const create = (name: string) => sendPlain(app, 'POST', '/pillars', { tgt_type: 'root', name, value: 1 });
    assert.equal((await create('app_two')).status, 201);
    assertProblem(await create('apptwo'), 403, 'forbidden');
  });

  test('a repeated request gives nothing to a token of the same user whose scope is another', async () => {
    const body = { tgt_type: 'root', name: 'app_key', value: 'v' };
    const key = { 'idempotency-key': 'k-1' };
    const wide = await world.scoped([{ role: 'editor', name_prefixes: ['app_'] }], 'ida');
    assert.equal((await sendPlain(wide, 'POST', '/pillars', body, key)).status, 201);
    const narrow = await world.scoped([{ role: 'editor', name_prefixes: ['web_'] }], 'ida');
    assertProblem(await sendPlain(narrow, 'POST', '/pillars', body, key), 403, 'forbidden');
  });

  test('tokens show their scopes and their last use, and a broken scope is refused', async () => {
    const scope = { role: 'viewer', collections: ['in'], name_prefixes: ['a'] };
    const made = plain(
      await sendPlain(world.admin, 'POST', '/tokens', { sub: 'eve', scoped_roles: [scope] }),
    );
    assert.deepEqual([made.scoped_roles, made.last_used_at], [[scope], null]);
    for (const bad of [
      { role: 'admin', collections: ['in'] },
      { role: 'viewer' },
      { role: 'viewer', collections: [] },
      { role: 'viewer', tgt_types: ['everything'] },
      { role: 'viewer', collections: ['a:b'] },
    ]) {
      const answer = await sendPlain(world.admin, 'POST', '/tokens', { sub: 'eve', scoped_roles: [bad] });
      assertProblem(answer, 422, 'unprocessable');
    }
    assertProblem(await sendPlain(world.admin, 'POST', '/tokens', { sub: 'eve' }), 422, 'unprocessable');
  });
});
