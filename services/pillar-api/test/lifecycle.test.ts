import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { decode, EVENTS_STREAM, LIMITS, zCloudEvent } from '@colonnade/contracts';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  type ApiWorld,
  assertProblem,
  auditRecords,
  etagOfAnswer,
  plain,
  readStream,
  sendPlain,
  startWorld,
} from './support.ts';

const FACTS = {
  hostname: 'web-1.example',
  os: { name: 'Debian', version: '13', service_pack: '', string: 'Debian GNU/Linux 13 (trixie)' },
  ips: ['192.0.2.7', '2001:db8::7'],
  agent_type: 'salt',
  roles: ['web', 'cache'],
  properties: { rack: 7, load: 1.5 },
};

describe('the life of a minion', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld();
    assert.equal((await sendPlain(world.admin, 'POST', '/masters', { id: 'east' })).status, 201);
  });
  after(() => world[Symbol.asyncDispose]());

  const send = (id: string, more: object = FACTS, client = world.admin) =>
    sendPlain(client, 'POST', '/inventories', { master: 'east', minion_id: id, ...more });
  const stateOf = async (id: string) =>
    plain(await world.admin.send('GET', `/masters/east/minions/${id}/inventory`)).state;
  const register = (id: string) =>
    sendPlain(
      world.admin,
      'PUT',
      `/masters/east/minions/${id}`,
      { collections: [] },
      { 'if-none-match': '*' },
    );
  const remove = async (id: string, what = '') => {
    const url = `/masters/east/minions/${id}${what}`;
    const etag = etagOfAnswer(await world.admin.send('GET', url));
    return world.admin.send('DELETE', url, undefined, { 'if-match': etag });
  };
  /** Events about a subject, as `type` and data. */
  const eventsOf = async (subject: string) => {
    const messages = await readStream(world.bus, EVENTS_STREAM);
    return messages
      .map(({ data }) => decode(zCloudEvent, data))
      .filter((event) => event.subject === subject)
      .map(({ type, data }) => ({ type, data: toPlain(data) as Record<string, unknown> }));
  };
  const typesOf = async (subject: string) => (await eventsOf(subject)).map(({ type }) => type);

  test('pending, accepted, deleted; each step is an event with what the inventory told', async () => {
    const received = await send('web-1');
    assert.equal(received.status, 201);
    const { facts, state, minion_id, received_by } = plain(received);
    assert.deepEqual(
      { facts, state, minion_id, received_by },
      {
        facts: FACTS,
        state: 'pending',
        minion_id: 'web-1',
        received_by: 'bootstrap-admin',
      },
    );
    assert.equal((await world.admin.send('GET', '/masters/east/minions/web-1')).status, 404);
    assert.equal((await register('web-1')).status, 201);
    assert.equal(await stateOf('web-1'), 'accepted');
    assert.equal((await send('web-1', { hostname: 'new.example' })).status, 200);
    assert.equal((await remove('web-1')).status, 204);
    assert.equal((await world.admin.send('GET', '/masters/east/minions/web-1/inventory')).status, 404);
    const subject = '/masters/east/minions/web-1';
    const types = ['inventory-received', 'registered', 'inventory-received', 'deleted'];
    const events = await waitFor('the events', async () => {
      const found = await eventsOf(subject);
      return found.length === types.length ? found : undefined;
    });
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.state, (data.facts as { hostname: string }).hostname]),
      [
        ['colonnade.minion.inventory-received.v1', 'pending', 'web-1.example'],
        ['colonnade.minion.registered.v1', undefined, 'web-1.example'],
        ['colonnade.minion.inventory-received.v1', 'accepted', 'new.example'],
        ['colonnade.minion.deleted.v1', undefined, 'new.example'],
      ],
    );
    assert.deepEqual(events[0]?.data.facts, {
      hostname: 'web-1.example',
      os_name: 'Debian',
      os_version: '13',
      os_service_pack: '',
      os_string: 'Debian GNU/Linux 13 (trixie)',
      ips: ['192.0.2.7', '2001:db8::7'],
      agent_type: 'salt',
      roles: ['web', 'cache'],
    });
  });

  test('a pending one is listed, and refused; an accepted one goes with its minion only', async () => {
    await send('web-2');
    await send('web-3');
    await register('web-3');
    const pending = await world.admin.send('GET', '/inventories?master=east&state=pending');
    assert.deepEqual(
      (plain(pending).items as { minion_id: string }[]).map((one) => one.minion_id),
      ['web-2'],
    );
    assertProblem(await remove('web-3', '/inventory'), 409, 'conflict');
    assertProblem(
      await world.admin.send('DELETE', '/masters/east/minions/web-2/inventory'),
      428,
      'precondition_required',
    );
    assert.equal((await remove('web-2', '/inventory')).status, 204);
    await waitFor('the event', async () =>
      (await typesOf('/masters/east/minions/web-2')).includes('colonnade.minion.inventory-deleted.v1'),
    );
  });

  const bad: readonly (readonly [string, object, RegExp])[] = [
    ['an unknown field', { ...FACTS, cpu: 1 }, /unknown field "cpu"/u],
    ['an address that is none', { ips: ['192.0.2.256'] }, /ips\.0: must be an IPv4 or IPv6 address/u],
    ['a role with a comma', { roles: ['a,b'] }, /roles\.0/u],
    ['a line break', { hostname: 'a\nb' }, /hostname holds a control character/u],
    ['a long text', { os: { string: 'x'.repeat(1025) } }, /os\.string is too long/u],
    ['too many addresses', { ips: Array.from({ length: 65 }, () => '192.0.2.1') }, /too many addresses/u],
  ];
  for (const [what, facts, message] of bad) {
    test(`an inventory with ${what} is refused, changes nothing, and is an event`, async () => {
      const before = await typesOf('/inventories');
      const answer = await send('bad', facts);
      assertProblem(answer, 422, 'unprocessable');
      assert.match(String(plain(answer).detail), message);
      assert.equal((await world.admin.send('GET', '/masters/east/minions/bad/inventory')).status, 404);
      const events = await waitFor('the event', async () => {
        const found = await eventsOf('/inventories');
        return found.length > before.length ? found : undefined;
      });
      const last = events.at(-1);
      assert.equal(last?.type, 'colonnade.minion.inventory-failed.v1');
      assert.deepEqual(JSON.parse(String(last?.data.inventory)), {
        master: 'east',
        minion_id: 'bad',
        ...facts,
      });
    });
  }

  /** As bytes, past the client's own JSON. */
  const post = (
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    token = world.adminToken,
  ) =>
    fetch(`${world.api.url}/inventories`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    });
  const failures = () => eventsOf('/inventories');
  /** The data of the event that a request leaves. */
  const failureAfter = async (request: () => Promise<Response>, status: number) => {
    const before = (await failures()).length;
    const answer = await request();
    assert.equal(answer.status, status);
    const found = await waitFor('the event', async () => {
      const all = await failures();
      return all.length > before ? all : undefined;
    });
    assert.equal(found.length, before + 1);
    const { detail } = (await answer.json()) as { detail: string };
    return { ...found.at(-1)?.data, detail } as { reason: string; inventory: string; detail: string };
  };

  const early: readonly (readonly [
    string,
    string | Uint8Array<ArrayBuffer>,
    Record<string, string>,
    number,
    string,
  ])[] = [
    ['text that is no JSON', '{"master": "east",', {}, 400, '{"master": "east",'],
    ['bytes that are no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), {}, 400, '"\ufffd"'],
    ['a key twice', '{"a": 1, "a": 2}', {}, 400, '{"a": 1, "a": 2}'],
    ['a number that cannot be kept', '{"a": 1e999}', {}, 422, '{"a": 1e999}'],
    ['nothing', '', {}, 400, ''],
    ['another media type', '<xml/>', { 'content-type': 'application/xml' }, 415, ''],
    ['no media type', new Uint8Array([0x7b, 0x7d]), { 'content-type': '' }, 415, ''],
    ['a body of an import', 'a: 1', { 'content-type': 'application/yaml' }, 415, ''],
    ['another charset', '{}', { 'content-type': 'application/json; charset=latin1' }, 415, '{}'],
    ['a content coding', '{}', { 'content-encoding': 'gzip' }, 415, '{}'],
    ['too much', `"${'x'.repeat(LIMITS.httpBodyBytes)}"`, {}, 413, ''],
  ];
  for (const [what, body, headers, status, kept] of early) {
    test(`an inventory that is ${what} is refused before its handler, and is an event all the same`, async () => {
      const { inventory, reason, detail } = await failureAfter(() => post(body, headers), status);
      assert.equal(inventory, kept);
      assert.equal(reason, detail);
    });
  }

  test('a query that is none fails an inventory; a name in it that no environment can carry does not reach the reason', async () => {
    const url = `${world.api.url}/inventories?x=1`;
    const headers = { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/json' };
    const whole = '{"master":"east","minion_id":"q"}';
    await failureAfter(() => fetch(url, { method: 'POST', body: whole, headers }), 422);
    const body = JSON.stringify({ master: 'east', minion_id: 'q', ['a\0'.repeat(2000)]: 1 });
    const { reason, inventory } = await failureAfter(() => post(body), 422);
    assert.doesNotMatch(reason, /\p{Cc}/u);
    assert.ok(reason.length <= 1024);
    assert.deepEqual(JSON.parse(inventory), JSON.parse(body));
  });

  test('what is refused before its handler is on record, from its beginning, without its body', async () => {
    await failureAfter(() => post('{"secret":', { 'audit-id': 'refused-early' }), 400);
    const records = (await auditRecords(world.bus)).filter(({ auditID }) => auditID === 'refused-early');
    assert.deepEqual(
      records.map(({ stage, responseStatus, requestObject }) => [stage, responseStatus?.code, requestObject]),
      [
        ['RequestReceived', undefined, undefined],
        ['ResponseComplete', 400, undefined],
      ],
    );
  });

  test('what nobody, or nobody with the right for the whole estate, has sent is no event', async () => {
    const before = (await failures()).length;
    assert.equal((await post('{', {}, 'col_0000000000000000_nobody')).status, 401);
    const { token: viewer } = await world.tokenOf(['viewer']);
    assert.equal((await post('{', {}, viewer)).status, 403);
    const part = { sub: 'part', scoped_roles: [{ role: 'editor', tgt_types: ['minion'] }] };
    const { token } = plain(await sendPlain(world.admin, 'POST', '/tokens', part)) as { token: string };
    assert.equal((await post('{', {}, token)).status, 400);
    const { inventory } = await failureAfter(() => post('the last'), 400);
    assert.equal(inventory, 'the last');
    assert.equal((await failures()).length, before + 1);
  });

  test('beyond so many in a minute a caller gets the same answer, and nobody is told', async () => {
    const { token } = await world.tokenOf(['editor'], 'noisy');
    const most = LIMITS.failedInventoriesPerMinute;
    const before = (await failures()).length;
    for (let i = 0; i < most + 20; i += 1) assert.equal((await post(`{ ${i}`, {}, token)).status, 400);
    assert.equal((await post('of another caller')).status, 400);
    const found = await waitFor('the last event', async () => {
      const all = await failures();
      return all.at(-1)?.data.inventory === 'of another caller' ? all : undefined;
    });
    // A token that comes back while they are sent is one event more.
    const count = found.length - before - 1;
    assert.ok(count >= most && count < most + 20, String(count));
    const text = await (
      await fetch(`${world.api.url}/metrics`, { headers: { authorization: `Bearer ${world.adminToken}` } })
    ).text();
    assert.match(text, /colonnade_api_inventories_failed_total\{[^}]*outcome="suppressed"[^}]*\} [1-9]/u);
  });

  test('an inventory for an unknown master is refused; so is one of somebody without rights for it', async () => {
    const count = async () => (await typesOf('/inventories')).length;
    const before = await count();
    const unknown = { master: 'nowhere', minion_id: 'x' };
    const answer = await sendPlain(world.admin, 'POST', '/inventories', unknown);
    assert.equal(plain(answer).code, 'unknown_master');
    const scoped = await world.scoped([{ role: 'editor', tgt_types: ['collection'] }]);
    assertProblem(await send('web-9', FACTS, scoped), 403, 'forbidden');
    assertProblem(await send('web-9', { bad: true }, scoped), 422, 'unprocessable');
    assertProblem(await send('last', { bad: true }), 422, 'unprocessable');
    await waitFor('the last event', async () => {
      const found = await eventsOf('/inventories');
      return String(found.at(-1)?.data.inventory).includes('"last"');
    });
    assert.equal(await count(), before + 2, 'those of the admin, and no other');
  });
});

describe('a deletion', () => {
  let world: ApiWorld;
  let hooks: ServiceProcess;
  before(async () => {
    world = await startWorld({ env: { DELETION_HOOKS: 'required' } });
    await sendPlain(world.admin, 'POST', '/masters', { id: 'east' });
  });
  after(async () => {
    await hooks?.[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const url = '/masters/east/minions/web-1';
  const remove = async () => {
    const etag = etagOfAnswer(await world.admin.send('GET', url));
    return world.admin.send('DELETE', url, undefined, { 'if-match': etag });
  };
  const hook = async (script: string) => {
    const file = path.join(world.dir, 'hooks.d', 'node-pre-deletion', '10-check');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
  };

  test('is not done when nobody can be asked', async () => {
    await sendPlain(world.admin, 'POST', '/inventories', { master: 'east', minion_id: 'web-1', ...FACTS });
    await sendPlain(world.admin, 'PUT', url, { collections: [] }, { 'if-none-match': '*' });
    assertProblem(await remove(), 503, 'unavailable');
    assert.equal((await world.admin.send('GET', url)).status, 200);
  });

  test('is refused by a hook, which says why, and done when it has no objection', async () => {
    await hook(
      '[ "$RUDDER_NODE_HOSTNAME $RUDDER_NODE_ROLES" = "web-1.example web,cache" ] || exit 2\necho "web-1 serves traffic" >&2; exit 1',
    );
    hooks = await startService({
      name: 'hook-runner',
      portVariable: 'OPS_PORT',
      logFile: path.join(world.dir, 'hook-runner.log'),
      env: {
        HOOKS_DIR: path.join(world.dir, 'hooks.d'),
        HOOKS_STATE_DIR: path.join(world.dir, 'hooks'),
        NATS_URL: world.bus.nats.url,
        NATS_NKEY_SEED: world.bus.nkeySeedOf('hook-runner'),
        OPS_HOST: '127.0.0.1',
        OPS_PORT: '0',
      },
    });
    const refused = await waitFor('an answer', async () => {
      const answer = await remove();
      return answer.status === 503 ? undefined : answer;
    });
    assertProblem(refused, 409, 'conflict');
    const { detail, said } = plain(refused);
    assert.equal(detail, 'the hook 10-check keeps the minion (exit code 1)');
    assert.match(String(said), /web-1 serves traffic/u);
    assert.equal((await world.admin.send('GET', url)).status, 200);
    await hook('exit 33');
    assert.equal((await remove()).status, 204);
    assert.equal((await world.admin.send('GET', url)).status, 404);
  });
});
