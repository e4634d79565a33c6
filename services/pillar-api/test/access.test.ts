import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AuditEvent } from '@colonnade/contracts';
import { type ApiClient, createApiClient } from '@colonnade/embedded';
import { openSqliteStore } from '@colonnade/estate-store';
import { hashToken } from '../src/auth/authenticate.ts';
import { allRoutes } from '../src/routes/index.ts';
import { type ApiWorld, assertProblem, auditRecords, plain, sendPlain, startWorld } from './support.ts';

const ROLES = ['viewer', 'editor', 'secret-reader', 'admin'] as const;
type Role = (typeof ROLES)[number];

/** Who may use what, written out by hand: it must not follow a mistake in the table it is to check. */
const ALLOWED: Readonly<Record<string, readonly Role[]>> = {
  'POST /pillars': ['editor', 'admin'],
  'PUT /pillars/:pid': ['editor', 'admin'],
  'GET /pillars/:pid': ROLES,
  'DELETE /pillars/:pid': ['editor', 'admin'],
  'GET /pillars/:pid/versions': ROLES,
  'POST /pillars/list': ROLES,
  'POST /pillars/search': ROLES,
  'POST /import': ['editor', 'admin'],
  // Without `secrets=omit`, as the test asks.
  'GET /export': ['secret-reader', 'admin'],
  'POST /pillars/:pid/reveal': ['secret-reader', 'admin'],
  'POST /pillars/:pid/seal': ['editor', 'admin'],
  'POST /pillars/:pid/unseal': ['admin'],
  'POST /pillars/:pid/purge-history': ['admin'],
  'POST /pillars/:pid/replace': ['editor', 'admin'],
  'POST /pillars/:pid/rename': ['editor', 'admin'],
  'POST /pillars/:pid/move': ['editor', 'admin'],
  'GET /pillars/:pid/versions/:tick': ROLES,
  'GET /pillars/:pid/diff': ROLES,
  'POST /pillars/:pid/restore': ['editor', 'admin'],
  'POST /scopes/restore': ['editor', 'admin'],
  'POST /pillars/:pid/purge': ['admin'],
  'GET /history/retention': ROLES,
  'POST /history/retention': ['admin'],
  'POST /masters/:master/minions/:id/move': ['editor', 'admin'],
  'POST /collections': ['editor', 'admin'],
  'GET /collections': ROLES,
  'GET /collections/:id': ROLES,
  'PATCH /collections/:id': ['editor', 'admin'],
  'PUT /collections/:id/rule': ['editor', 'admin'],
  'DELETE /collections/:id/rule': ['editor', 'admin'],
  'DELETE /collections/:id': ['editor', 'admin'],
  'POST /masters': ['admin'],
  'GET /masters': ROLES,
  'GET /masters/:id': ROLES,
  'PUT /masters/:id': ['admin'],
  'DELETE /masters/:id': ['admin'],
  'POST /masters/:id/tokens': ['admin'],
  'DELETE /masters/:id/tokens/:jti': ['admin'],
  'PUT /masters/:master/minions/:id': ['editor', 'admin'],
  'GET /masters/:master/minions': ROLES,
  'GET /masters/:master/minions/:id': ROLES,
  'DELETE /masters/:master/minions/:id': ['editor', 'admin'],
  'POST /generations': ['editor', 'admin'],
  'GET /generations': ROLES,
  'GET /generations/:id': ROLES,
  'GET /masters/:master/minions/:id/policies/diff': ROLES,
  'GET /hooks': ROLES,
  'GET /hooks/runs': ROLES,
  'POST /hooks/:event/run': ['admin'],
  'POST /inventories': ['editor', 'admin'],
  'GET /inventories': ROLES,
  'GET /masters/:master/minions/:id/inventory': ROLES,
  'DELETE /masters/:master/minions/:id/inventory': ['editor', 'admin'],
  'POST /tokens': ['admin'],
  'GET /tokens': ['admin'],
  'DELETE /tokens/:id': ['admin'],
  'GET /changes': ROLES,
  'GET /whoami': ROLES,
  'GET /keys': ROLES,
  'POST /keys/:name/rotate': ['admin'],
  'GET /keys/:name/rewrap': ROLES,
  'POST /keys/:name/rewrap': ['admin'],
  'POST /keys/:name/min-version': ['admin'],
  'POST /keys/:name/destroy': ['admin'],
  'POST /keys/:name/undestroy': ['admin'],
  'GET /limits': ROLES,
  'POST /revocations': ['admin'],
  'GET /revocations': ['admin'],
  'DELETE /revocations/:id': ['admin'],
  'GET /pillars/for-target': ROLES,
  'POST /tasks/templates': ['editor', 'admin'],
  'GET /tasks/templates': ROLES,
  'GET /tasks/templates/:tpl_id': ROLES,
  'PUT /tasks/templates/:tpl_id': ['editor', 'admin'],
  'DELETE /tasks/templates/:tpl_id': ['editor', 'admin'],
  'GET /tasks/template/:tpl_id/with-defaults': ROLES,
  'GET /tasks/template/:tpl_id/defaults': ROLES,
  'PUT /tasks/template/:tpl_id/defaults': ['editor', 'admin'],
  'POST /tasks': ['editor', 'admin'],
  'GET /tasks': ROLES,
  'GET /tasks/:task_id': ROLES,
  'POST /tasks/:task_id/state': ['editor', 'admin'],
  'DELETE /tasks/:task_id': ['editor', 'admin'],
  'POST /tasks/:task_id/token': ['secret-reader', 'admin'],
  'POST /masters/:id/enrolments': ['admin'],
  'POST /services': ['admin'],
  'GET /services': ROLES,
  'GET /services/:id': ROLES,
  'PUT /services/:id': ['admin'],
  'DELETE /services/:id': ['admin'],
  'POST /services/:id/enrolments': ['admin'],
  'DELETE /services/:id/enrolments/:sid': ['admin'],
  // Of workloads alone, with identities of their own.
  'POST /events': [],
  'GET /identity': [],
  'POST /identity/renew': [],
  'POST /identity/enrol': [],
  'GET /identity/pillars': [],
  'GET /identity/minions': [],
  'GET /identity/minions/:id/pillars': [],
  'GET /pillars/:pid/reach': ROLES,
  'GET /explain': ROLES,
  'POST /explain/preview': ROLES,
  'GET /metrics': ROLES,
};

describe('who may do what', () => {
  let world: ApiWorld;
  const clients = new Map<Role, ApiClient>();

  before(async () => {
    // Every route is denied here, several times.
    world = await startWorld({ env: { DENIALS_PER_MINUTE: '1000' } });
    for (const role of ROLES) clients.set(role, await world.as([role]));
  });
  after(() => world[Symbol.asyncDispose]());

  const metricsOf = async ({ api, adminToken }: ApiWorld) => {
    const headers = { authorization: `Bearer ${adminToken}` };
    return (await fetch(new URL('/metrics', api.url), { headers })).text();
  };
  const pathOf = (url: string) =>
    url.replace(/:[a-z]+/gu, 'nothing').replace('/changes', '/changes?once=true');

  test('the table names every route', () => {
    const routes = allRoutes({} as never);
    const names = routes.map(({ method, url }) => `${method} ${url}`);
    assert.deepEqual([...names, 'GET /metrics'].sort(), Object.keys(ALLOWED).sort());
  });

  for (const [route, allowed] of Object.entries(ALLOWED)) {
    test(`${route}: ${allowed.join(', ')}`, async () => {
      const [method = '', url = ''] = route.split(' ');
      for (const [role, client] of clients) {
        const answer = await client.send(method, pathOf(url));
        if (allowed.includes(role))
          assert.ok(![401, 403].includes(answer.status), `${role}: ${answer.status}`);
        else assertProblem(answer, 403, 'forbidden');
      }
      const response = await fetch(new URL(pathOf(url), world.api.url), { method });
      assert.equal(response.status, 401);
      assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer/u);
    });
  }

  test('nothing but liveness and readiness is open, and unknown paths are not told to strangers', async () => {
    const status = async (path: string) => (await fetch(new URL(path, world.api.url))).status;
    assert.deepEqual(
      [await status('/healthz'), await status('/readyz'), await status('/metrics'), await status('/nowhere')],
      [200, 200, 401, 401],
    );
  });

  test('roles of one token add up: an editor who reads secrets may bring a sealed value', async () => {
    const both = await world.as(['editor', 'secret-reader']);
    const made = await sendPlain(both, 'POST', '/pillars', {
      tgt_type: 'root',
      name: 's',
      value: 'x',
      is_secret: true,
    });
    assert.equal(made.status, 201);
    const revealed = await both.send('POST', `/pillars/${plain(made).pid}/reveal`);
    assert.equal(plain(revealed).value, 'x');
  });

  test('only an admin names the owner of a collection', async () => {
    const body = { name: 'c', owner: 'somebody' };
    assertProblem(
      await sendPlain(await world.as(['editor']), 'POST', '/collections', body),
      403,
      'forbidden',
    );
    assert.equal(plain(await sendPlain(world.admin, 'POST', '/collections', body)).owner, 'somebody');
  });

  test('a token of the right form with another secret, an unknown id or a past end is refused', async () => {
    const { id, token } = await world.tokenOf(['viewer']);
    const other = randomBytes(32).toString('base64url');
    const expired = `col_${'e'.repeat(16)}_${other}`;
    const store = await openSqliteStore({ path: world.storePath });
    const record = {
      id: 'e'.repeat(16),
      hash: hashToken(expired),
      sub: 'x',
      roles: ['admin'],
      scopedRoles: [],
      createdAtMs: 1,
      lastUsedAtMs: undefined,
    } as const;
    await store.write({
      mutations: [
        { kind: 'token.put', expect: 'absent', record: { ...record, expiresAtMs: Date.now() - 1 } },
      ],
      events: [],
      by: 'x',
      atMs: 1,
    });
    await store[Symbol.asyncDispose]();
    for (const bad of [`col_${id}_${other}`, `col_${'f'.repeat(16)}_${other}`, expired, `${token}x`]) {
      assertProblem(await createApiClient(world.api.url, bad).send('GET', '/masters'), 401, 'unauthorized');
    }
    assert.equal((await createApiClient(world.api.url, token).send('GET', '/masters')).status, 200);
  });

  test('a token is shown once, is listed without its secret, and is gone at once when deleted', async () => {
    const { id, token } = await world.tokenOf(['secret-reader'], 'ann');
    const secret = plain(
      await sendPlain(world.admin, 'POST', '/pillars', {
        tgt_type: 'root',
        name: 'once',
        value: 'x',
        is_secret: true,
      }),
    );
    const ann = createApiClient(world.api.url, token);
    assert.equal((await ann.send('POST', `/pillars/${secret.pid}/reveal`)).status, 200);
    const listed = JSON.stringify(plain(await world.admin.send('GET', '/tokens?limit=500')));
    assert.ok(listed.includes(id));
    assert.ok(!listed.includes(token.slice(`col_${id}_`.length)));
    const grantKey = path.join(world.dir, 'kms', 'readers', `${id}.json`);
    assert.ok(existsSync(grantKey));
    assert.equal((await world.admin.send('DELETE', `/tokens/${id}`)).status, 204);
    assert.ok(!existsSync(grantKey), 'crypto-kms still takes its grants');
    assertProblem(await ann.send('GET', '/masters'), 401, 'unauthorized');
    assertProblem(await world.admin.send('DELETE', `/tokens/${id}`), 404, 'not_found');
  });

  test('the last admin token cannot be deleted, and one that was deleted does not come back', async () => {
    await using own = await startWorld();
    const bootstrap = own.adminToken.split('_')[1] ?? '';
    assertProblem(await own.admin.send('DELETE', `/tokens/${bootstrap}`), 409, 'conflict');
    const next = await own.as(['admin']);
    assert.equal((await next.send('DELETE', `/tokens/${bootstrap}`)).status, 204);
    await own.api.restart();
    assertProblem(await own.admin.send('GET', '/masters'), 401, 'unauthorized');
    assert.equal((await next.send('GET', '/masters')).status, 200);
  });

  test('denials, tokens, masters, reveals and writes are on record, with who, what and how it ended', async () => {
    const viewer = await world.as(['viewer'], 'vera');
    const denied = await viewer.send('POST', '/pillars/some/reveal');
    await fetch(new URL('/masters', world.api.url));
    const made = await sendPlain(world.admin, 'POST', '/masters', { id: 'audited' });
    const records = await auditRecords(world.bus);
    const find = (auditID: string | null, stage: AuditEvent['stage']) =>
      records.find((r) => r.auditID === auditID && r.stage === stage);
    const denial = find(denied.headers.get('audit-id'), 'ResponseComplete');
    assert.deepEqual(
      [
        denial?.user.username,
        denial?.verb,
        { ...denial?.objectRef },
        denial?.responseStatus?.code,
        denial?.responseStatus?.reason,
      ],
      [
        'vera',
        'create',
        {
          ...{ resource: 'pillars', name: 'some', uid: 'some', subresource: 'reveal' },
          ...{ apiGroup: 'colonnade', apiVersion: 'v1' },
        },
        403,
        'forbidden',
      ],
    );
    assert.ok(records.some((r) => r.user.username === 'system:anonymous' && r.responseStatus?.code === 401));
    assert.ok(find(made.headers.get('audit-id'), 'RequestReceived'));
    const done = find(made.headers.get('audit-id'), 'ResponseComplete');
    assert.deepEqual(
      [done?.responseStatus?.code, done?.annotations?.['colonnade/location']],
      [201, '/masters/audited'],
    );
    const text = JSON.stringify(records, (_, v) => (typeof v === 'bigint' ? String(v) : v));
    const { token, bridge } = plain(made) as { token: { token: string }; bridge: { redis_password: string } };
    for (const secret of [token.token, bridge.redis_password, world.adminToken])
      assert.ok(!text.includes(secret));
  });

  test('denials beyond the limit leave one record together, whatever they ask for, and bother nobody else', async () => {
    await using own = await startWorld({ env: { DENIALS_PER_MINUTE: '3' } });
    const viewer = await own.as(['viewer'], 'vera');
    const strangers = () => fetch(new URL('/tokens', own.api.url), { method: 'POST' });
    const before = (await auditRecords(own.bus)).length;
    const statuses: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      const answer = await sendPlain(viewer, 'POST', '/tokens', {});
      statuses.push(answer.status, (await strangers()).status);
      if (answer.status !== 429) continue;
      const waitS = Number(answer.headers.get('retry-after'));
      assert.ok(waitS > 1 && waitS <= 60, `Retry-After is ${waitS}`);
    }
    assert.deepEqual(statuses, [403, 401, 403, 401, 403, 401, 429, 429, 429, 429, 429, 429]);
    assert.equal((await auditRecords(own.bus)).length - before, 6);
    assert.equal((await viewer.send('GET', '/masters')).status, 200);
    assert.equal((await own.admin.send('GET', '/tokens')).status, 200);
    const metrics = await metricsOf(own);
    assert.match(metrics, /colonnade_api_denials_suppressed_total\{[^}]*kind="user"[^}]*\} 3/u);
    await own.api.kill('SIGTERM');
    const told = (await auditRecords(own.bus)).filter(({ verb }) => verb === 'suppress');
    assert.deepEqual(
      told.map(({ annotations }) => annotations?.['colonnade/suppressed']),
      ['6'],
    );
    assert.match(told[0]?.annotations?.['colonnade/sources'] ?? '', /user:vera=3/u);
  });

  test("a client's Audit-ID is kept when well formed, and a repeated one loses no record", async () => {
    const send = (id: string) => world.admin.send('GET', '/tokens', undefined, { 'audit-id': id });
    assert.equal((await send('my-id-1')).headers.get('audit-id'), 'my-id-1');
    assert.equal((await send('my-id-1')).headers.get('audit-id'), 'my-id-1');
    assert.notEqual((await send('no good')).headers.get('audit-id'), 'no good');
    const records = (await auditRecords(world.bus)).filter((r) => r.auditID === 'my-id-1');
    assert.equal(records.filter((r) => r.stage === 'ResponseComplete').length, 2);
  });
});
