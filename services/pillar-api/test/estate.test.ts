import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { route } from '@colonnade/bus';
import { ColonnadeError, eventSubject, mergerExplain } from '@colonnade/contracts';
import { openSqliteReader } from '@colonnade/estate-store';
import { canonicalText, parseValue } from '@colonnade/value';
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

describe('the estate over HTTP', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld();
    const { admin } = world;
    const master = await sendPlain(admin, 'POST', '/masters', {
      id: 'm1',
      envs: ['prod'],
      on_unknown_minion: 'refuse',
    });
    assert.equal(master.status, 201);
    for (const [id, parent_id] of [
      ['c1', null],
      ['c2', 'c1'],
      ['c3', 'c2'],
    ]) {
      const made = await sendPlain(admin, 'POST', '/collections', { id, name: `n-${id}`, parent_id });
      assert.equal(made.status, 201);
    }
    const put = await putMinion('web-1', ['c1', 'c3'], { 'if-none-match': '*' });
    assert.equal(put.status, 201);
  });
  after(() => world[Symbol.asyncDispose]());

  const putMinion = (id: string, collections: string[], headers: Record<string, string>) =>
    sendPlain(world.admin, 'PUT', `/masters/m1/minions/${encodeURIComponent(id)}`, { collections }, headers);
  const create = (body: object, headers?: Record<string, string>) =>
    sendPlain(world.admin, 'POST', '/pillars', body, headers);
  const list = async (filter: object) =>
    plain(await sendPlain(world.admin, 'POST', '/pillars/list', filter)) as {
      items: Record<string, unknown>[];
      next_cursor: string | null;
    };

  test('tgt_id and pillarenv are resolved by the server (seed 000), whatever the client says', async () => {
    const root = plain(await create({ tgt_type: 'root', name: 'r', value: 1, pillarenv: 'prod' }));
    const minion = plain(
      await create({
        tgt_type: 'minion',
        minion_id: 'web-1',
        master: 'm1',
        name: 'r',
        value: 1,
        pillarenv: 'base',
      }),
    );
    const collection = plain(await create({ tgt_type: 'collection', tgt_id: 'c3', name: 'r', value: 1 }));
    const seen = [root, minion, collection].map((p) => [p.tgt_type, p.tgt_id, p.pillarenv, p.created_by]);
    assert.deepEqual(seen, [
      ['root', 'root', 'base', 'bootstrap-admin'],
      ['minion', 'web-1', 'minion_id:web-1;master:m1', 'bootstrap-admin'],
      ['collection', 'c3', 'collection:c3;user:bootstrap-admin', 'bootstrap-admin'],
    ]);
  });

  test('a value comes back as it went in: integers, floats, 64 bits, any text, odd keys', async () => {
    const value =
      '{"":null,"__proto__":{"constructor":1},"big":-9223372036854775808,"float":1.0,"int":1,"list":[[],{},true],"small":1e-07,"text":"\\u2028 ж 😀 \\u0000"}';
    const made = await world.admin.send(
      'POST',
      '/pillars',
      parseValue(`{"tgt_type":"root","name":"kinds","value":${value}}`),
    );
    assert.equal(made.status, 201);
    const pid = plain(made).pid;
    const got = (await world.admin.send('GET', `/pillars/${pid}`)).value as { value: never };
    assert.equal(canonicalText(got.value), canonicalText(parseValue(value)));
    const secret = await world.admin.send(
      'POST',
      '/pillars',
      parseValue(`{"tgt_type":"root","name":"secret kinds","is_secret":true,"value":${value}}`),
    );
    const shown = (await world.admin.send('POST', `/pillars/${plain(secret).pid}/reveal`)).value as {
      value: never;
    };
    assert.equal(canonicalText(shown.value), canonicalText(parseValue(value)));
  });

  test('a secret is sealed before it is stored, masked wherever it is shown, revealed on request', async () => {
    const secret = 'correct horse battery staple';
    const made = await create({
      tgt_type: 'minion',
      minion_id: 'web-1',
      master: 'm1',
      name: 's',
      value: secret,
      is_secret: true,
    });
    const { pid, value } = plain(made);
    assert.equal(value, '*******');
    assert.equal(plain(await world.admin.send('GET', `/pillars/${pid}`)).value, '*******');
    assert.equal((await list({ minion_id: 'web-1', name: 's' })).items[0]?.value, '*******');
    const versions = plain(await world.admin.send('GET', `/pillars/${pid}/versions`)) as {
      items: { value: unknown }[];
    };
    assert.deepEqual(
      versions.items.map((v) => v.value),
      ['*******'],
    );
    const revealed = await world.admin.send('POST', `/pillars/${pid}/reveal`);
    assert.equal(plain(revealed).value, secret);
    assert.equal(revealed.headers.get('cache-control'), 'no-store');
    assertProblem(
      await world.admin.send(
        'POST',
        `/pillars/${plain(await create({ tgt_type: 'root', name: 'open', value: 1 })).pid}/reveal`,
      ),
      409,
      'conflict',
    );
  });

  test('a sealed value is taken as it is, when it opens as this pillar, and not sealed again', async () => {
    const made = await create({ tgt_type: 'root', name: 'carried', value: 'cargo', is_secret: true });
    await using reader = await openSqliteReader({ path: world.storePath });
    const sealed = async () => {
      const query = { since: undefined, scopes: ['base'], collections: false, masters: [], minions: [] };
      return (await reader.snapshot(query)).scopes.get('base')?.find((p) => p.name === 'carried')?.value;
    };
    const before = await sealed();
    await world.admin.send('DELETE', `/pillars/${plain(made).pid}`, undefined, {
      'if-match': etagOfAnswer(made),
    });
    assert.ok(before !== undefined);
    const again = await world.admin.send('POST', '/pillars', {
      tgt_type: 'root',
      name: 'carried',
      is_secret: true,
      value: before,
    });
    assert.equal(again.status, 201, JSON.stringify(plain(again)));
    assert.equal(canonicalText((await sealed()) ?? null), canonicalText(before));
    assert.equal(plain(await world.admin.send('POST', `/pillars/${plain(again).pid}/reveal`)).value, 'cargo');
  });

  test('an ETag never comes twice: not after a change back, not after a delete and a new create', async () => {
    const seen = new Set<string>();
    let made = await create({ tgt_type: 'root', name: 'etag', value: 1 });
    for (let round = 0; round < 3; round += 1) {
      const first = etagOfAnswer(made);
      const url = `/pillars/${plain(made).pid}`;
      const second = etagOfAnswer(
        await sendPlain(world.admin, 'PUT', url, { value: 2 }, { 'if-match': first }),
      );
      const third = etagOfAnswer(
        await sendPlain(world.admin, 'PUT', url, { value: 1 }, { 'if-match': second }),
      );
      for (const etag of [first, second, third]) assert.ok(!seen.has(etag) && seen.add(etag));
      assertProblem(
        await sendPlain(world.admin, 'PUT', url, { value: 3 }, { 'if-match': first }),
        412,
        'precondition_failed',
      );
      assert.equal(etagOfAnswer(await world.admin.send('GET', url)), third);
      await world.admin.call('DELETE', url, undefined, { 'if-match': third });
      assertProblem(
        await sendPlain(world.admin, 'PUT', url, { value: 3 }, { 'if-match': third }),
        404,
        'not_found',
      );
      made = await create({ tgt_type: 'root', name: 'etag', value: 1 });
    }
    const list = `"nope.x.1", ${etagOfAnswer(made)}`;
    assert.equal(
      (await world.admin.send('DELETE', `/pillars/${plain(made).pid}`, undefined, { 'if-match': list }))
        .status,
      204,
    );
  });

  test('the history of a pillar outlives it', async () => {
    const made = await create({ tgt_type: 'root', name: 'history', value: 'a' });
    const url = `/pillars/${plain(made).pid}`;
    const put = await sendPlain(world.admin, 'PUT', url, { value: 'b' }, { 'if-match': etagOfAnswer(made) });
    await world.admin.call('DELETE', url, undefined, { 'if-match': etagOfAnswer(put) });
    const { items } = plain(await world.admin.send('GET', `${url}/versions`)) as {
      items: { op: string; value: string }[];
    };
    assert.deepEqual(
      items.map((v) => [v.op, v.value]),
      [
        ['create', 'a'],
        ['update', 'b'],
        ['delete', 'b'],
      ],
    );
    const page = async (query: string) =>
      plain(await world.admin.send('GET', `${url}/versions?${query}`)) as {
        items: { op: string }[];
        next_cursor: string | null;
      };
    const first = await page('limit=2');
    assert.deepEqual(
      first.items.map((v) => v.op),
      ['create', 'update'],
    );
    const second = await page(`limit=2&cursor=${first.next_cursor}`);
    assert.deepEqual([second.items.map((v) => v.op), second.next_cursor], [['delete'], null]);
    assertProblem(await world.admin.send('GET', '/pillars/never/versions'), 404, 'not_found');
  });

  test('lists show root and minion pillars only, by filter, in pages that miss and repeat nothing', async () => {
    for (const id of ['db-1', 'db-2'])
      assert.equal((await putMinion(id, [], { 'if-none-match': '*' })).status, 201);
    for (let i = 0; i < 25; i += 1) {
      const target =
        i % 2 === 0
          ? { tgt_type: 'root' }
          : { tgt_type: 'minion', minion_id: `db-${1 + (i % 3 === 0 ? 1 : 0)}`, master: 'm1' };
      assert.equal((await create({ ...target, name: `page-${i}`, value: i })).status, 201);
    }
    const walk = async (filter: object) => {
      const pids: unknown[] = [];
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof list>> = await list({
          ...filter,
          limit: 4,
          ...(cursor === null ? {} : { cursor }),
        });
        pids.push(...page.items.map((p) => p.pid));
        for (const p of page.items) assert.ok(['root', 'minion'].includes(String(p.tgt_type)));
        cursor = page.next_cursor;
      } while (cursor !== null);
      assert.equal(new Set(pids).size, pids.length);
      return pids.length;
    };
    const all = await list({ limit: 500 });
    assert.equal(await walk({}), all.items.length);
    const count = (keep: (p: Record<string, unknown>) => boolean) => all.items.filter(keep).length;
    assert.equal(
      await walk({ tgt_type: 'root' }),
      count((p) => p.tgt_type === 'root'),
    );
    assert.equal(
      await walk({ minion_id: 'db-1' }),
      count((p) => p.tgt_id === 'db-1'),
    );
    assert.equal(
      await walk({ master: 'm1' }),
      count((p) => p.tgt_type === 'minion'),
    );
    assert.equal(
      await walk({ master: 'm1', minion_id: 'db-2' }),
      count((p) => p.tgt_id === 'db-2'),
    );
    assert.equal(await walk({ name: 'page-3' }), 1);
    assert.equal(await walk({ name: 'page-none' }), 0);
    assertProblem(
      await sendPlain(world.admin, 'POST', '/pillars/list', { tgt_type: 'root', master: 'm1' }),
      422,
      'unprocessable',
      'tgt_type',
    );
  });

  test('a page holds some megabytes of values at most, and says where to go on', async () => {
    const value = 'x'.repeat(250_000);
    for (let i = 0; i < 20; i += 1) {
      assert.equal(
        (await create({ tgt_type: 'minion', minion_id: 'web-1', master: 'm1', name: `large-${i}`, value }))
          .status,
        201,
      );
    }
    const first = await list({ minion_id: 'web-1', limit: 500 });
    assert.ok(first.items.length < 20, `${first.items.length} rows`);
    const second = await list({ minion_id: 'web-1', limit: 500, cursor: first.next_cursor });
    assert.equal(second.next_cursor, null);
    const names = [...first.items, ...second.items]
      .map((p) => String(p.name))
      .filter((name) => name.startsWith('large-'));
    assert.equal(new Set(names).size, 20);
  });

  test('a collection knows its ancestors, inherits its owner, moves, and goes only when nothing hangs on it', async () => {
    const url = '/collections/c3';
    const got = plain(await world.admin.send('GET', url)) as { ancestors: { id: string }[]; owner: string };
    assert.deepEqual(
      got.ancestors.map((c) => c.id),
      ['c1', 'c2'],
    );
    const child = await sendPlain(await world.as(['editor'], 'ed'), 'POST', '/collections', {
      id: 'c4',
      name: 'x',
      parent_id: 'c3',
    });
    assert.equal(plain(child).owner, 'bootstrap-admin');
    assertProblem(
      await sendPlain(world.admin, 'POST', '/collections', { name: 'x', parent_id: 'c3', owner: 'ed' }),
      422,
      'unprocessable',
      'owner',
    );
    const moved = await sendPlain(
      world.admin,
      'PATCH',
      '/collections/c4',
      { parent_id: null, name: 'y' },
      { 'if-match': etagOfAnswer(child) },
    );
    assert.deepEqual([plain(moved).parent_id, plain(moved).name], [null, 'y']);
    const deleted = await world.admin.send('DELETE', url, undefined, {
      'if-match': etagOfAnswer(await world.admin.send('GET', url)),
    });
    assertProblem(deleted, 409, 'conflict');
    assert.equal(
      (await world.admin.send('DELETE', '/collections/c4', undefined, { 'if-match': etagOfAnswer(moved) }))
        .status,
      204,
    );
    const other = await sendPlain(await world.as(['editor'], 'ed'), 'POST', '/collections', {
      name: 'of ed',
    });
    const across = await sendPlain(
      world.admin,
      'PATCH',
      `/collections/${plain(other).id}`,
      { parent_id: 'c1' },
      { 'if-match': etagOfAnswer(other) },
    );
    assertProblem(across, 409, 'conflict', 'owner');
  });

  test('the pillars of a collection are found again: by their collection, and by who is in their way', async () => {
    await sendPlain(world.admin, 'POST', '/collections', { id: 'found', name: 'found' });
    const pillar = { tgt_type: 'collection', collection_id: 'found', name: 'lost' };
    const { pid } = plain(await create({ ...pillar, value: 'canary-in-found', is_secret: true }));
    const twin = await create({ ...pillar, value: 1 });
    assertProblem(twin, 409, 'already_exists');
    assert.ok(String(plain(twin).detail).endsWith(`: /pillars/${pid}`));
    const got = await world.admin.send('GET', '/collections/found');
    assert.deepEqual(plain(got).pillars, [{ pid, name: 'lost', is_secret: true }]);
    assert.equal(plain(got).pillars_more, false);
    const kept = await world.admin.send('DELETE', '/collections/found', undefined, {
      'if-match': etagOfAnswer(got),
    });
    assertProblem(kept, 409, 'conflict');
    assert.match(String(plain(kept).detail), /has pillars: GET \/collections\/found names/u);
    const refused = await sendPlain(world.admin, 'POST', '/pillars/list', { tgt_type: 'collection' });
    assert.match(String(plain(refused).detail), /^tgt_type: must be .*GET \/collections\/\{id\}/u);
  });

  test('a minion keeps the order of its collections; a master goes only without minions', async () => {
    const url = '/masters/m1/minions/web-1';
    const got = await world.admin.send('GET', url);
    assert.deepEqual(plain(got).collections, ['c1', 'c3']);
    assertProblem(await putMinion('web-1', [], { 'if-none-match': '*' }), 412, 'precondition_failed');
    const put = await putMinion('web-1', ['c3', 'c1'], { 'if-match': etagOfAnswer(got) });
    assert.deepEqual([put.status, plain(put).collections], [200, ['c3', 'c1']]);
    assertProblem(await putMinion('new', [], { 'if-match': etagOfAnswer(got) }), 412, 'precondition_failed');
    const members = plain(await world.admin.send('GET', '/masters/m1/minions?collection=c3')) as {
      items: { id: string }[];
    };
    assert.deepEqual(
      members.items.map((m) => m.id),
      ['web-1'],
    );
    assertProblem(
      await world.admin.send('DELETE', url, undefined, { 'if-match': etagOfAnswer(put) }),
      409,
      'conflict',
    );
    const master = await world.admin.send('GET', '/masters/m1');
    assertProblem(
      await world.admin.send('DELETE', '/masters/m1', undefined, { 'if-match': etagOfAnswer(master) }),
      409,
      'conflict',
    );
    const odd = 'mínion %2F "1"';
    const made = await putMinion(odd, [], { 'if-none-match': '*' });
    const found = await world.admin.send('GET', made.headers.get('location') ?? '');
    assert.equal(plain(found).id, odd);
  });

  test('a master is registered with all a Salt admin needs, gets a second token, loses the first', async () => {
    const made = await sendPlain(world.admin, 'POST', '/masters', { id: 'm2', token_lifetime_s: 3600 });
    const { token, bridge, token_ids } = plain(made) as {
      token: { jti: string; token: string };
      bridge: { redis_user: string; redis_password: string; redis_acl_rules: string[] };
      token_ids: string[];
    };
    assert.deepEqual(token_ids, [token.jti]);
    assert.equal(bridge.redis_user, 'master-m2');
    assert.ok(!bridge.redis_acl_rules.join(' ').includes(bridge.redis_password));
    assertProblem(
      await sendPlain(world.admin, 'POST', '/masters', { id: 'm2' }),
      409,
      'already_exists',
      'id',
    );
    const next = plain(await world.admin.send('POST', '/masters/m2/tokens')) as { jti: string };
    assert.equal((await world.admin.send('DELETE', `/masters/m2/tokens/${token.jti}`)).status, 204);
    assertProblem(await world.admin.send('DELETE', `/masters/m2/tokens/${token.jti}`), 404, 'not_found');
    const now = await world.admin.send('GET', '/masters/m2');
    assert.deepEqual(plain(now).token_ids, [next.jti]);
    const put = await sendPlain(
      world.admin,
      'PUT',
      '/masters/m2',
      { envs: ['qa'], on_unknown_minion: 'refuse' },
      { 'if-match': etagOfAnswer(now) },
    );
    assert.deepEqual([plain(put).envs, plain(put).token_ids], [['qa'], [next.jti]]);
    assert.equal(
      (await world.admin.send('DELETE', '/masters/m2', undefined, { 'if-match': etagOfAnswer(put) })).status,
      204,
    );
  });

  test('a master has at most 16 tokens', async () => {
    await world.admin.call('POST', '/masters', parseValue('{"id":"m3"}'));
    for (let i = 1; i < 16; i += 1)
      assert.equal((await world.admin.send('POST', '/masters/m3/tokens')).status, 201);
    assertProblem(await world.admin.send('POST', '/masters/m3/tokens'), 409, 'conflict');
  });

  test('events tell what happened and never hold a value', async () => {
    const canary = 'canary-in-an-event';
    const made = await create({ tgt_type: 'root', name: 'evented', value: canary });
    const subject = `/pillars/${plain(made).pid}`;
    const event = await waitFor('the event', async () => {
      const all = await readStream(world.bus, 'EVENTS');
      return all.find((m) => m.data.includes(subject));
    });
    assert.equal(event.subject, eventSubject('pillar.created'));
    assert.ok(!event.data.includes(canary));
    const { data, clock, type } = JSON.parse(event.data.toString()) as Record<string, unknown>;
    assert.equal(type, 'colonnade.pillar.created.v1');
    assert.equal(clock, String(plain(made).clock));
    const { tgt_type, tgt_id, pillarenv, pid } = plain(made);
    assert.deepEqual(data, { is_secret: false, name: 'evented', pid, pillarenv, tgt_id, tgt_type });
  });

  test('explain without a merger is 503', async () => {
    assertProblem(await world.admin.send('GET', '/explain?master=m1&minion_id=web-1'), 503, 'unavailable');
  });

  test('an explanation that is too large for a message says what to ask instead, and that works', async () => {
    const merger = await world.bus.as('pillar-merger');
    const where = { pid: 'p', tgt_type: 'root', tgt_id: 'root', pillarenv: 'base' } as const;
    const keys = ['open', 'secret'].map((name) => ({
      ...{ name, is_secret: name === 'secret', value: null, winner: where, overrode: [] },
    }));
    const tooLarge = route(mergerExplain, async ({ omit_values, pillarenv, ...asked }) => {
      if (omit_values !== true)
        throw new ColonnadeError('too_large', 'the answer is too large for one message');
      return { clock: 1, ...asked, pillarenv, scopes: [], keys };
    });
    await merger.serve({ name: 'pillar-merger', version: '0.1.0', description: 'test' }, [tooLarge]);
    const answer = await world.admin.send('GET', '/explain?master=m1&minion_id=web-1');
    assertProblem(answer, 422, 'unprocessable', 'values');
    assert.match(String(plain(answer).detail), /over 4 MiB: ask with values=omit/u);
    const short = await world.admin.send('GET', '/explain?master=m1&minion_id=web-1&values=omit');
    const shown = (plain(short).keys as { value: unknown }[]).map(({ value }) => value);
    assert.deepEqual([short.status, shown], [200, [null, null]]);
  });

  test('HEAD answers where GET does, with its status and headers, and without a body', async () => {
    const made = await sendPlain(world.admin, 'POST', '/pillars', {
      tgt_type: 'root',
      name: 'head',
      value: 1,
    });
    const head = async (path: string, token = world.adminToken) => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(new URL(path, world.api.url), { method: 'HEAD', headers });
      assert.equal(await answer.text(), '');
      return answer;
    };
    const found = await head(`/pillars/${plain(made).pid}`);
    assert.deepEqual([found.status, found.headers.get('etag')], [200, etagOfAnswer(made)]);
    const statuses = [];
    for (const path of ['/pillars/nothing', '/nowhere', '/masters', '/metrics', '/readyz', '/pillars/list'])
      statuses.push((await head(path)).status);
    assert.deepEqual(statuses, [404, 404, 200, 200, 200, 404]);
    assert.equal((await head('/masters', 'x')).status, 401);
    const wrong = await world.admin.send('PATCH', '/masters');
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'GET, HEAD, POST']);
    for (const [method, path, status] of [
      ['QUERY', '/import', 405],
      ['PATCH', '/masters', 405],
      ['POST', '/nowhere', 404],
    ] as const) {
      for (const type of ['application/yaml', 'text/csv']) {
        const headers = { authorization: `Bearer ${world.adminToken}`, 'content-type': type };
        const answer = await fetch(new URL(path, world.api.url), { method, headers, body: 'a: 1' });
        assert.equal(answer.status, status, `${method} ${path} ${type}`);
      }
    }
  });
});
