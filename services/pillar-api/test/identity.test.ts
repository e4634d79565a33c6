import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { WORKLOAD_LIFETIME_S } from '@colonnade/contracts';
import { type ApiClient, createApiClient } from '@colonnade/embedded';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  generateKeyPair,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from 'jose';
import { waitFor } from '../../../test/support/wait-for.ts';
import { allRoutes } from '../src/routes/index.ts';
import { type ApiWorld, assertProblem, auditRecords, plain, sendPlain, startWorld } from './support.ts';

const SECRET = 'correct horse battery staple';
const SCHEMA = { type: 'object' };
const MINIONS = [{ master: 'm1', minion_id: 'web-1' }];

type Identity = { token: string; jti: string; expires_at: string };
type Own = { name: string; value: unknown; tgt_type: string; is_secret: boolean };

describe('identities of workloads', () => {
  let world: ApiWorld;
  /** Makes tasks with identities; eve may not reveal. */
  let ann: ApiClient;
  let eve: ApiClient;
  let bob: ApiClient;
  before(async () => {
    world = await startWorld({
      kmsEnv: { KMS_IDENTITY_AUDIENCES: 'kubernetes' },
      // Much is denied here.
      env: { DENIALS_PER_MINUTE: '1000' },
    });
    ann = await world.as(['editor', 'secret-reader'], 'ann');
    eve = await world.as(['editor'], 'eve');
    bob = await world.as(['editor', 'secret-reader'], 'bob');
    for (const id of ['m1', 'm2']) await sendPlain(world.admin, 'POST', '/masters', { id });
    const fresh = { 'if-none-match': '*' };
    await sendPlain(world.admin, 'PUT', '/masters/m1/minions/web-1', { collections: [] }, fresh);
    await sendPlain(world.admin, 'PUT', '/masters/m2/minions/db-1', { collections: [] }, fresh);
    await sendPlain(ann, 'POST', '/tasks/templates', { id: 'deploy', name: 'deploy', schema: SCHEMA });
    for (const [who, value] of [
      [ann, 'of ann'],
      [bob, 'of bob'],
    ] as const)
      await sendPlain(who, 'PUT', '/tasks/template/deploy/defaults', {
        pillars: [{ name: 'saved', value, is_secret: true }],
      });
  });
  after(() => world[Symbol.asyncDispose]());

  const newTask = async (client = ann, more: object = {}) => {
    const answer = await sendPlain(client, 'POST', '/tasks', {
      ...{ tpl_id: 'deploy', minions: MINIONS },
      pillars: [
        { name: 'password', value: SECRET, is_secret: true },
        { name: 'port', value: 80 },
      ],
      ...more,
    });
    assert.equal(answer.status, 201, JSON.stringify(plain(answer)));
    return plain(answer) as {
      id: string;
      identity: Identity | null;
      identity_refused: { code: string; detail: string } | null;
    };
  };
  const as = (token: string) => createApiClient(world.api.url, token);
  const identityOf = ({ identity }: { identity: Identity | null }) => identity ?? assert.fail('no identity');
  const end = (id: string) => sendPlain(ann, 'POST', `/tasks/${id}/state`, { state: 'succeeded' });

  test('a task gets its identity when it is made, and reads its own pillars and its template’s, secrets included', async () => {
    const task = await newTask();
    const { token, jti } = identityOf(task);
    const header = decodeProtectedHeader(token);
    const claims = decodeJwt(token);
    assert.deepEqual([header.alg, header.typ], ['EdDSA', 'colonnade-workload+jwt']);
    assert.deepEqual(
      [claims.iss, claims.sub, claims.aud, claims.jti],
      ['http://127.0.0.1:8080', `task:${task.id}`, 'colonnade', jti],
    );
    assert.deepEqual(claims.colonnade, { kind: 'task', task: task.id, template: 'deploy', owner: 'ann' });
    assert.ok(Number(claims.exp) - Number(claims.iat) <= WORKLOAD_LIFETIME_S);
    assert.equal(plain(await as(token).send('GET', '/identity')).sub, `task:${task.id}`);
    const read = await as(token).send('GET', '/identity/pillars');
    assert.equal(read.status, 200, JSON.stringify(plain(read)));
    assert.deepEqual(
      (plain(read).items as Own[]).map((one) => [one.tgt_type, one.name, one.value]),
      [
        ['task_tpl', 'saved', 'of ann'],
        ['task', 'password', SECRET],
        ['task', 'port', 80],
      ],
    );
  });

  test('a task that has ended, expired or was never made is refused, however good its token is', async () => {
    const ended = await newTask();
    const other = await newTask(ann, { expires_in_s: 1 });
    assert.equal((await end(ended.id)).status, 200);
    for (const path of ['/identity', '/identity/pillars'])
      assertProblem(await as(identityOf(ended).token).send('GET', path), 401, 'unauthorized');
    assertProblem(await as(identityOf(ended).token).send('POST', '/identity/renew'), 401, 'unauthorized');
    await waitFor('the end of the task', async () => {
      const answer = await as(identityOf(other).token).send('GET', '/identity');
      return answer.status === 401;
    });
    assertProblem(await bob.send('POST', `/tasks/${ended.id}/token`), 409, 'conflict');
  });

  test('either header carries a token, and two that differ carry none', async () => {
    const { token } = identityOf(await newTask());
    const { token: other } = identityOf(await newTask());
    const status = async (headers: Record<string, string>) =>
      (await fetch(new URL('/identity', world.api.url), { headers })).status;
    const authorization = `Bearer ${token}`;
    assert.equal(await status({ 'x-colonnade-token': token }), 200);
    assert.equal(await status({ authorization, 'x-colonnade-token': token }), 200);
    assert.equal(await status({ authorization, 'x-colonnade-token': other }), 401);
    assert.equal(await status({ authorization: 'Basic eDp5', 'x-colonnade-token': token }), 401);
    assert.equal(await status({ 'x-colonnade-token': `Bearer ${token}` }), 401);
    const viewer = await world.tokenOf(['viewer'], 'vic');
    const whoami = await fetch(new URL('/whoami', world.api.url), {
      headers: { 'x-colonnade-token': viewer.token },
    });
    assert.equal(whoami.status, 200);
  });

  test('a workload may use no route but those of its own, nor anybody theirs', async () => {
    const { token } = identityOf(await newTask());
    const own = new Set(['GET /identity', 'POST /identity/renew', 'GET /identity/pillars']);
    for (const { method, url } of allRoutes({} as never)) {
      const path = url.replace(/:[a-z_]+/gu, 'nothing');
      const answer = await as(token).send(method, path);
      const name = `${method} ${url}`;
      if (own.has(name)) assert.ok([200, 201].includes(answer.status), `${name}: ${answer.status}`);
      else assert.equal(answer.status, 403, name);
      if (!url.startsWith('/identity')) continue;
      assert.equal((await world.admin.send(method, path)).status, 403, name);
    }
  });

  test('a token is renewed by itself; one for another audience opens nothing here', async () => {
    const task = await newTask();
    const first = identityOf(task);
    const renewed = await as(first.token).send('POST', '/identity/renew');
    assert.equal(renewed.status, 201, JSON.stringify(plain(renewed)));
    const next = plain(renewed) as Identity;
    assert.notEqual(next.jti, first.jti);
    assert.equal((await as(next.token).send('GET', '/identity/pillars')).status, 200);
    const renew = (body: object, token = first.token) =>
      sendPlain(as(token), 'POST', '/identity/renew', body);
    const foreign = plain(await renew({ audience: 'kubernetes', algorithm: 'ES256' })) as Identity;
    assert.equal(decodeProtectedHeader(foreign.token).alg, 'ES256');
    assert.equal(decodeJwt(foreign.token).aud, 'kubernetes');
    assertProblem(await as(foreign.token).send('GET', '/identity'), 401, 'unauthorized');
    assertProblem(await renew({}, foreign.token), 401, 'unauthorized');
    assertProblem(await renew({ audience: 'elsewhere' }), 403, 'kms_refused');
    assertProblem(await renew({ audience: 'colonnade' }), 403, 'kms_refused');
    assertProblem(await renew({ audience: 'a b' }), 422, 'unprocessable', 'audience');
    assertProblem(await renew({ algorithm: 'none' }), 422, 'unprocessable', 'algorithm');
    assertProblem(await renew({ minion: 'web-1' }), 403, 'forbidden');
    await end(task.id);
    assertProblem(await renew({}, next.token), 401, 'unauthorized');
  });

  test('a token that is forged, cut, doubled or somebody else’s is refused', async () => {
    const { token } = identityOf(await newTask());
    const [header = '', payload = '', signature = ''] = token.split('.');
    const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = decodeJwt(token);
    const jwks = (await (
      await fetch(new URL('/.well-known/jwks.json', world.api.url))
    ).json()) as JSONWebKeySet;
    const kid = decodeProtectedHeader(token).kid ?? '';
    const publicKey = JSON.stringify(jwks.keys.find((one) => one.kid === kid));
    const typ = 'colonnade-workload+jwt';
    const hmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid, typ })
      .sign(new TextEncoder().encode(publicKey));
    const own = await generateKeyPair('EdDSA');
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA', kid, typ })
      .sign(own.privateKey);
    const bad = [
      ...[`${text({ alg: 'none', typ, kid })}.${payload}.`, hmac, forged],
      ...[token.slice(0, -2), `${token}${token}`, `${token}.${signature}`, `${header}.${payload}`],
      `${header}.${text({ ...claims, colonnade: { ...(claims.colonnade as object), owner: 'bob' } })}.${signature}`,
      `${text({ alg: 'ES256', typ, kid })}.${payload}.${signature}`,
    ];
    for (const [at, one] of bad.entries()) {
      const answer = await as(one).send('GET', '/identity/pillars');
      assert.equal(answer.status, 401, `${at}: ${answer.status}`);
    }
    assert.equal((await as(token).send('GET', '/identity/pillars')).status, 200);
  });

  test('keys and discovery are open to all and may be kept for a while; a library verifies with them', async () => {
    const get = (path: string) => fetch(new URL(path, world.api.url));
    const discovery = await get('/.well-known/openid-configuration');
    const found = (await discovery.json()) as Record<string, unknown>;
    assert.deepEqual(
      [found.issuer, found.jwks_uri],
      ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/.well-known/jwks.json'],
    );
    const answer = await get('/.well-known/jwks.json');
    for (const { headers } of [discovery, answer])
      assert.match(headers.get('cache-control') ?? '', /^public, max-age=\d+$/u);
    const keys = createLocalJWKSet((await answer.json()) as JSONWebKeySet);
    const { token } = identityOf(await newTask());
    const { payload } = await jwtVerify(token, keys, { audience: 'colonnade', issuer: String(found.issuer) });
    assert.match(String(payload.sub), /^task:/u);
  });

  test('a further token of a task is for who may reveal its secrets, and reads his own defaults', async () => {
    const { id } = await newTask();
    assertProblem(await eve.send('POST', `/tasks/${id}/token`), 403, 'forbidden');
    const made = await bob.send('POST', `/tasks/${id}/token`);
    assert.equal(made.status, 201, JSON.stringify(plain(made)));
    const { items } = plain(await as(String(plain(made).token)).send('GET', '/identity/pillars')) as {
      items: Own[];
    };
    assert.deepEqual(
      items.map(({ value }) => value),
      ['of bob', SECRET, 80],
    );
    assertProblem(await bob.send('POST', '/tasks/none/token'), 404, 'not_found');
  });

  test('who may not reveal the secrets of a task makes it without an identity, and is told which right is missing', async () => {
    const scoped = await world.admin.send('POST', '/tokens', {
      sub: 'sam',
      roles: ['editor'],
      scoped_roles: [{ role: 'secret-reader', collections: ['c1'] }],
    });
    assert.equal(scoped.status, 201, JSON.stringify(plain(scoped)));
    for (const client of [eve, as(String(plain(scoped).token))]) {
      const made = await newTask(client);
      assert.equal(made.identity, null);
      assert.equal(made.identity_refused?.code, 'forbidden');
      assert.match(made.identity_refused?.detail ?? '', /secret:reveal/u);
      assert.equal((await bob.send('POST', `/tasks/${made.id}/token`)).status, 201);
    }
    assert.equal((await newTask()).identity_refused, null);
  });

  test('a task made with an API token from before identities has none; the same request again gives it one more', async () => {
    const old = await world.tokenOf(['editor', 'secret-reader'], 'old');
    const file = path.join(world.dir, 'kms', 'readers', `${old.id}.json`);
    const reader = JSON.parse(await readFile(file, 'utf8')) as { rights: string[] };
    assert.deepEqual(reader.rights, ['reveal', 'task']);
    await writeFile(file, JSON.stringify({ ...reader, rights: ['reveal'] }), { mode: 0o600 });
    const bare = await newTask(as(old.token));
    assert.deepEqual([bare.identity, bare.identity_refused?.code], [null, 'kms_refused']);
    const body = { tpl_id: 'deploy', minions: MINIONS, pillars: [] };
    const again = () => sendPlain(ann, 'POST', '/tasks', body, { 'idempotency-key': 'twice' });
    const [first, second] = [plain(await again()), plain(await again())] as {
      id: string;
      identity: Identity;
    }[];
    assert.equal(first?.id, second?.id);
    assert.notEqual(first?.identity.jti, second?.identity.jti);
  });

  describe('of masters', () => {
    const enrolment = async (master = 'm1') => {
      const made = await world.admin.send('POST', `/masters/${master}/enrolments`);
      assert.equal(made.status, 201, JSON.stringify(plain(made)));
      return plain(made) as { id: string; token: string };
    };
    const enrol = (token: string) => as(token).send('POST', '/identity/enrol');
    const masterToken = async () => {
      const { id, token } = await enrolment();
      return { id, token: String(plain(await enrol(token)).token) };
    };

    test('a one-time token is good once, whoever comes first', async () => {
      const { id, token } = await enrolment();
      const answers = await Promise.all([enrol(token), enrol(token), enrol(token)]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 401, 401]);
      assertProblem(await enrol(token), 401, 'unauthorized');
      const won = answers.find(({ status }) => status === 201) ?? assert.fail();
      assert.deepEqual(plain(won).workload, { kind: 'master', master: 'm1' });
      assert.equal(decodeJwt(String(plain(won).token)).sid, id);
      for (const bad of [token.slice(0, -1), `${token}${token}`, `cole_${id}_${'A'.repeat(43)}`])
        assertProblem(await enrol(bad), 401, 'unauthorized');
      for (const route of ['/whoami', '/identity', '/nowhere'])
        assertProblem(await as((await enrolment()).token).send('GET', route), 401, 'unauthorized');
    });

    test('it sees its own minions and their pillars, and nobody else’s', async () => {
      const { token } = await masterToken();
      for (const [master, minion] of [
        ['m1', 'web-1'],
        ['m2', 'db-1'],
      ])
        await sendPlain(world.admin, 'POST', '/pillars', {
          ...{
            tgt_type: 'minion',
            tgt_id: minion,
            master,
            name: 'key',
            value: `of ${minion}`,
            is_secret: true,
          },
        });
      const listed = plain(await as(token).send('GET', '/identity/minions')).items;
      assert.deepEqual(listed, [{ id: 'web-1', collections: [] }]);
      const read = await as(token).send('GET', '/identity/minions/web-1/pillars');
      assert.deepEqual(
        (plain(read).items as Own[]).map(({ value }) => value),
        ['of web-1'],
      );
      assertProblem(await as(token).send('GET', '/identity/minions/db-1/pillars'), 404, 'not_found');
      assertProblem(await as(token).send('GET', '/identity/pillars'), 403, 'forbidden');
      const renew = (minion: string) => sendPlain(as(token), 'POST', '/identity/renew', { minion });
      assertProblem(await renew('db-1'), 404, 'not_found');
      const minion = String(plain(await renew('web-1')).token);
      const own = plain(await as(minion).send('GET', '/identity/pillars')).items as Own[];
      assert.deepEqual(
        own.map(({ value }) => value),
        ['of web-1'],
      );
      assertProblem(await as(minion).send('GET', '/identity/minions'), 403, 'forbidden');
    });

    test('taking the enrolment back ends its identities, those of its minions too, and what waits to enrol', async () => {
      const { id, token } = await masterToken();
      const waiting = await enrolment();
      const minion = String(
        plain(await sendPlain(as(token), 'POST', '/identity/renew', { minion: 'web-1' })).token,
      );
      for (const one of [id, waiting.id])
        assert.equal((await world.admin.send('DELETE', `/masters/m1/tokens/${one}`)).status, 204);
      for (const one of [token, minion]) {
        assertProblem(await as(one).send('GET', '/identity'), 401, 'unauthorized');
        assertProblem(await as(one).send('POST', '/identity/renew'), 401, 'unauthorized');
      }
      assertProblem(await enrol(waiting.token), 401, 'unauthorized');
    });
  });

  test('what workloads do is on record under their own names, and no token is', async () => {
    const task = await newTask();
    const { token } = identityOf(task);
    const read = await as(token).send('GET', '/identity/pillars');
    const records = await auditRecords(world.bus);
    const record = records.find(
      ({ auditID, stage }) => auditID === read.headers.get('audit-id') && stage === 'ResponseComplete',
    );
    assert.deepEqual(
      [record?.user.username, record?.user.groups, record?.verb, record?.objectRef?.resource],
      [`task:${task.id}`, ['colonnade:tasks'], 'get', 'identity'],
    );
    const all = JSON.stringify(records, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    for (const secret of [token, token.split('.')[2] ?? '', SECRET]) assert.ok(!all.includes(secret));
  });
});
