import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { BridgeClient } from '@colonnade/embedded';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const fileOf = (path: string) => new URL(`../../${path}`, import.meta.url);
const textOf = (path: string) => readFileSync(fileOf(path), 'utf8');
const SECRET = 'correct horse battery staple';

describe('docs/salt-box.md', () => {
  const page = textOf('docs/salt-box.md');
  /** Texts in code marks that look like this. */
  const named = (form: RegExp) =>
    [...page.matchAll(/`([^`]+)`/gu)].flatMap(([, text = '']) => form.exec(text) ?? []);

  test('names routes, commands and tests that there are', () => {
    const { paths } = JSON.parse(textOf('services/pillar-api/openapi.generated.json')) as {
      paths: Record<string, Record<string, unknown>>;
    };
    const routes = new Set(
      Object.entries(paths).flatMap(([path, of]) =>
        Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`),
      ),
    );
    const told = named(/^(?:GET|POST|PUT|PATCH|DELETE) \/\S*$/u).map((text) =>
      text.replaceAll(/:(\w+)/gu, '{$1}'),
    );
    assert.ok(told.length > 12);
    assert.deepEqual(
      told.filter((one) => !routes.has(one)),
      [],
    );
    const commands = textOf('packages/cli/README.md');
    const unknown = named(/^colonnade .*$/u).filter(
      (text) => !new RegExp(`\\| \`${text.slice('colonnade '.length)}[\` ]`, 'u').test(commands),
    );
    assert.deepEqual(unknown, []);
    assert.deepEqual(
      named(/^(?:test|services)\/.*$/u).filter((path) => !existsSync(fileOf(path))),
      [],
    );
  });
});

describe('what a client of Salt.Box sends', () => {
  let stack: TestStack;
  let bridge: BridgeClient;
  const sub = 'bootstrap-admin';

  const send = async (method: string, url: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await stack.api.send(
      method,
      url,
      body === undefined ? undefined : fromPlain(body),
      headers,
    );
    return { status: answer.status, body: toPlain(answer.value ?? null) as Record<string, unknown> };
  };
  const create = async (body: object) => {
    const made = await send('POST', '/pillars', {
      is_secret: false,
      created_by: sub,
      pillarenv: 'anything',
      ...body,
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return made.body;
  };
  const merged = async (pillarenv: string, minionId = 'web') => {
    const reply = await bridge.ask({ minionId, pillarenv, ttlMs: 5000 });
    return reply.ok ? toPlain(reply.pillar) : reply.error.code;
  };

  before(async () => {
    stack = await stackForTests();
    bridge = stack.bridge(await stack.addMaster('m1'));
    const write = writeEstate(stack.api);
    await write.collection('eu');
    await write.collection('web', 'eu');
    await write.minion('m1', 'web', ['web']);
  });
  after(() => stack[Symbol.asyncDispose]());

  test('pillars: where they stand, what a list shows, and what cannot be updated', async () => {
    const root = await create({ tgt_type: 'root', name: 'a', value: 'root' });
    const own = await create({ tgt_type: 'minion', minion_id: 'web', master: 'm1', name: 'own', value: 1 });
    const web = await create({ tgt_type: 'collection', tgt_id: 'web', name: 'a', value: 'web' });
    await create({ tgt_type: 'collection', tgt_id: 'eu', name: 'a', value: 'eu' });
    const key = await create({ tgt_type: 'root', name: 'key', value: SECRET, is_secret: true });
    assert.deepEqual(
      [root, own, web].map(({ pillarenv }) => pillarenv),
      ['base', 'minion_id:web;master:m1', `collection:web;user:${sub}`],
    );
    const { body } = await send('POST', '/pillars/list', {});
    const items = body.items as { name: string; tgt_type: string; value: unknown }[];
    assert.deepEqual(items.map(({ tgt_type, name, value }) => [tgt_type, name, value]).sort(), [
      ['minion', 'own', 1],
      ['root', 'a', 'root'],
      ['root', 'key', '*******'],
    ]);
    const put = (pid: unknown, headers?: Record<string, string>) =>
      send('PUT', `/pillars/${pid}`, { value: 'root' }, headers);
    assert.equal((await put(root.pid)).status, 428);
    assert.equal((await put(root.pid, { 'if-match': '*' })).status, 200);
    const refused = await put(key.pid, { 'if-match': '*' });
    assert.deepEqual([refused.status, refused.body.code], [409, 'secret_immutable']);
    assert.equal(
      (await send('POST', '/pillars', { tgt_type: 'root', name: 'b', value: 1, created_by: 'eve' })).status,
      422,
    );
  });

  test('master_get_pillar_data: the order of the environments, secrets opened, nothing that is another’s', async () => {
    assert.deepEqual(await merged('base'), { a: 'root', key: SECRET, own: 1 });
    const collection = `collection:web;user:${sub}`;
    assert.deepEqual(await merged(`base,${collection}`), { a: 'web', key: SECRET, own: 1 });
    assert.deepEqual(await merged(`${collection},base`), { a: 'root', key: SECRET, own: 1 });
    assert.deepEqual(await merged(collection), { a: 'web' });
    assert.deepEqual(await merged(`collection:eu;user:${sub}`), { a: 'eu' });
    assert.equal(await merged('minion_id:web;master:m1'), 'forbidden');
    assert.equal(await merged(collection, 'newcomer'), 'forbidden');
  });

  test('tasks: their pillars, what is saved as defaults, and get_for_target', async () => {
    const schema = { type: 'object', properties: { port: { type: 'integer' }, key: { type: 'string' } } };
    assert.equal(
      (await send('POST', '/tasks/templates', { id: 'deploy', name: 'Deploy', schema })).status,
      201,
    );
    const pillars = [
      { name: 'port', value: 80 },
      { name: 'key', value: SECRET, is_secret: true },
    ];
    const minions = [{ master: 'm1', minion_id: 'web' }];
    const made = await send('POST', '/tasks', { tpl_id: 'deploy', minions, pillars, save_as_defaults: true });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const defaults = (await send('GET', '/tasks/template/deploy/with-defaults')).body;
    assert.deepEqual((defaults.schema as typeof schema).properties, {
      ...schema.properties,
      port: { type: 'integer', default: 80 },
    });
    assert.ok(!JSON.stringify(defaults).includes('***') && JSON.stringify(defaults.secrets).includes('key'));
    const id = String(made.body.id);
    assert.deepEqual(await merged(`task:${id}`), { key: SECRET, port: 80 });
    const names = async (query: Record<string, string>) => {
      const { body } = await send('GET', `/pillars/for-target?${new URLSearchParams(query)}`);
      return (body.items as { name: string; pillarenv: string }[])
        .map(({ name, pillarenv }) => `${pillarenv} ${name}`)
        .sort();
    };
    assert.deepEqual(await names({ tgt_type: 'task', tgt_id: id }), [`task:${id} key`, `task:${id} port`]);
    const saved = `task_tpl:deploy;user:${sub}`;
    assert.deepEqual(await names({ tgt_type: 'task_tpl', tgt_id: 'deploy', user_sub: sub }), [
      `${saved} key`,
      `${saved} port`,
    ]);
    assert.deepEqual(await names({ tgt_type: 'root', tgt_id: 'root' }), []);
    assert.deepEqual(await names({ tgt_type: 'root', tgt_id: 'root', pillarenv: 'base' }), [
      'base a',
      'base key',
    ]);
  });
});
