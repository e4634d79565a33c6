import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { canonicalText, fromPlain, parseValue, toPlain, type Value } from '@colonnade/value';
import { mongoForTests, skipWithoutMongo } from '../../../test/support/mongo.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

/** What is exported from one estate and imported into an empty one gives the same estate, on each store. */

const FORMATS = { yaml: 'application/yaml', json: 'application/x-ndjson' } as const;
type Format = keyof typeof FORMATS;
/** Sealed values are opened with the key they were sealed with. */
const kmsEnv = { PILLARS_KEK_B64: randomBytes(32).toString('base64') };
const SCHEMA = parseValue(
  '{"type":"object","properties":{"port":{"type":"integer","maximum":9223372036854775807},"token":{"type":"string"},"ratio":{"minimum":0.0}}}',
);
/** What YAML, JSON or a database is known to read as something else. */
const NASTY = [
  ...['1', '1.0', '-0.0'],
  ...['9223372036854775807', '-9223372036854775808', '5e-324', 'true', 'null', '[]', '{}', '""'],
  ...[
    '"0644"',
    '"yes"',
    '"y"',
    '"12e45678"',
    '"2024-01-01"',
    '"="',
    '"<<"',
    '"~"',
    '"1:30"',
    '"0x1F"',
    '"- a"',
  ],
  ...[
    '"a: b"',
    '"#x"',
    '" lead"',
    '"trail "',
    '"a\\nb\\n"',
    '"---"',
    '"...\\n---\\n"',
    '"\\u0000\\u0085\\u2028é😀"',
  ],
  ...['"{{ jinja }}"', '"*a"', '"&a"', '"!x"', '"%d"', '"@a"', '"|"', '">"', '"\\t"'],
  '{"80":"x","yes":1,"<<":{"a":1},"__proto__":{"b":2},"a.b":1,"$x":[1.5,{"c":null}],"":"","=":"=","~":[]}',
];

async function send(world: ApiWorld, method: string, path: string, body?: string, format: Format = 'yaml') {
  const response = await fetch(new URL(path, world.api.url), {
    method,
    headers: { authorization: `Bearer ${world.adminToken}`, 'content-type': FORMATS[format] },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

/** Without the moment it is of. */
async function exported(world: ApiWorld, format: Format): Promise<string> {
  const text = await send(world, 'GET', `/export?format=${format}`);
  const end = format === 'json' ? text.indexOf('\n') + 1 : text.indexOf('---\n', 3);
  assert.match(text.slice(0, end), /"?kind"?: ?"?estate/u);
  const begin = format === 'json' ? '{"kind":"estate","version":2}\n' : '---\nkind: estate\nversion: 2\n';
  return begin + text.slice(end);
}

const skip = await skipWithoutMongo();

type Counts = Record<string, { created: number; updated: number; unchanged: number }>;

async function imported(world: ApiWorld, text: string, format: Format): Promise<Counts> {
  const dry = toPlain(parseValue(await send(world, 'POST', '/import?dry_run=true', text, format))) as Record<
    string,
    unknown
  >;
  assert.deepEqual(dry.problems, []);
  const done = await send(world, 'POST', `/import?confirm=${dry.confirm}`, text, format);
  return (toPlain(parseValue(done)) as { counts: Counts }).counts;
}

async function made(answer: ReturnType<typeof sendPlain>): Promise<Record<string, unknown>> {
  const { status, value } = await answer;
  assert.ok(status === 200 || status === 201, `${status} ${value === undefined ? '' : canonicalText(value)}`);
  return toPlain(value ?? null) as Record<string, unknown>;
}

/** One of everything, made by its own endpoint. */
async function fill(world: ApiWorld): Promise<void> {
  const { admin } = world;
  const post = (path: string, body: unknown) => made(sendPlain(admin, 'POST', path, body));
  await post('/collections', { id: 'all', name: 'Everything: yes' });
  await post('/collections', { id: 'web', name: 'y', parent_id: 'all' });
  const etag = { 'if-match': (await admin.send('GET', '/collections/web')).headers.get('etag') ?? '' };
  const rule = { all: [{ field: 'roles', op: 'in', values: ['a', 'yes'] }] };
  await made(sendPlain(admin, 'PUT', '/collections/web/rule', rule, etag));
  await post('/masters', { id: 'salt-a', envs: ['prod'], on_unknown_minion: 'refuse' });
  await post('/masters', { id: 'salt-b' });
  const none = { 'if-none-match': '*' };
  for (const [id, collections] of [
    ['web-1', ['web', 'all']],
    ['007', []],
  ] as const) {
    await made(sendPlain(admin, 'PUT', `/masters/salt-a/minions/${id}`, { collections }, none));
  }
  const facts = {
    hostname: 'web-1.example',
    os: { name: 'Debian', version: '12' },
    ips: ['192.0.2.1'],
    roles: ['a'],
  };
  await post('/inventories', { master: 'salt-a', minion_id: 'web-1', ...facts, properties: { cpus: 2 } });
  await post('/inventories', { master: 'salt-b', minion_id: 'waits', hostname: 'w' });
  const template = await admin.call('POST', '/tasks/templates', {
    id: 'deploy',
    name: 'no',
    schema: SCHEMA,
  } as Value);
  assert.equal(template.status, 201);
  await fillTasks(world);
  await fillServices(world);
  const web = { tgt_type: 'collection', collection_id: 'web' };
  const minion = { tgt_type: 'minion', master: 'salt-a', minion_id: 'web-1' };
  for (const [i, text] of NASTY.entries()) {
    const body = {
      ...(fromPlain({ tgt_type: 'root', name: `nasty ${i}` }) as object),
      value: parseValue(text),
    };
    assert.equal((await admin.call('POST', '/pillars', body as Value)).status, 201, text);
  }
  for (const target of [{ tgt_type: 'root' }, web, minion]) {
    await post('/pillars', { ...target, name: 'yes', value: `of ${target.tgt_type}` });
    await post('/pillars', {
      ...target,
      name: 'password',
      value: `hunter2 ${target.tgt_type}`,
      is_secret: true,
    });
  }
}

async function fillServices({ admin }: ApiWorld): Promise<void> {
  const types = [{ type: 'order.placed', schema: SCHEMA }, { type: 'order.paid' }];
  assert.equal((await admin.call('POST', '/services', { id: 'shop', types } as Value)).status, 201);
  await made(sendPlain(admin, 'POST', '/services', { id: 'mill', types: [] }));
  await made(sendPlain(admin, 'POST', '/services/shop/enrolments'));
}

async function fillTasks(world: ApiWorld): Promise<void> {
  const { admin } = world;
  const task = {
    tpl_id: 'deploy',
    minions: [{ master: 'salt-a', minion_id: 'web-1' }],
    pillars: [
      { name: 'port', value: 8080 },
      { name: 'token', value: 'hunter2 task', is_secret: true },
    ],
  };
  const more: Record<string, object> = {
    created: { expires_in_s: 3600, save_as_defaults: true },
    running: { collections: ['web'] },
    ...{ succeeded: {}, failed: {}, cancelled: {} },
  };
  for (const [state, extra] of Object.entries(more)) {
    const { id } = await made(sendPlain(admin, 'POST', '/tasks', { ...task, ...extra }));
    if (state === 'created') continue;
    await made(sendPlain(admin, 'POST', `/tasks/${id}/state`, { state }));
  }
  const editor = await world.as(['editor'], 'eve');
  const defaults = {
    pillars: [
      { name: 'port', value: 1 },
      { name: 'token', value: 'hunter2 eve', is_secret: true },
    ],
  };
  await made(sendPlain(editor, 'PUT', '/tasks/template/deploy/defaults', defaults));
}

/** Every secret of an estate by its place, opened. */
async function secretsOf(world: ApiWorld): Promise<Record<string, unknown>> {
  const opened: Record<string, unknown> = {};
  for (const tgt_type of ['root', 'collection', 'minion', 'task', 'task_tpl']) {
    const found = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { tgt_type }));
    for (const item of found.items as {
      pid: string;
      pillarenv: string;
      name: string;
      is_secret: boolean;
    }[]) {
      if (!item.is_secret) continue;
      const { value } = plain(await sendPlain(world.admin, 'POST', `/pillars/${item.pid}/reveal`));
      opened[`${item.pillarenv} ${item.name}`] = value;
    }
  }
  return opened;
}

async function checkSame(from: ApiWorld, to: ApiWorld, format: Format): Promise<void> {
  const text = await exported(from, format);
  const counts = await imported(to, text, format);
  const numbers = Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, count.created]));
  const others = {
    collections: 2,
    masters: 2,
    minions: 2,
    inventories: 2,
    templates: 1,
    tasks: 5,
    services: 2,
  };
  assert.deepEqual(numbers, { ...others, pillars: NASTY.length + 6 + 10 + 4 });
  for (const either of ['yaml', 'json'] as const)
    assert.equal(await exported(to, either), await exported(from, either));
  const again = await imported(to, text, format);
  for (const { created, updated } of Object.values(again)) assert.deepEqual([created, updated], [0, 0]);
  const secrets = await secretsOf(from);
  assert.equal(Object.keys(secrets).length, 3 + 5 + 2);
  assert.deepEqual(await secretsOf(to), secrets);
  const pending = plain(await sendPlain(to.admin, 'GET', '/inventories?state=pending'));
  assert.deepEqual(
    (pending.items as { minion_id: string }[]).map(({ minion_id }) => minion_id),
    ['waits'],
  );
}

describe('an estate that is exported and imported', () => {
  let from: ApiWorld;
  before(async () => {
    from = await startWorld({ kmsEnv });
    await fill(from);
  });
  after(() => from?.[Symbol.asyncDispose]());

  test('holds no plaintext of a secret, and everything else', async () => {
    for (const format of ['yaml', 'json'] as const) {
      const text = await exported(from, format);
      assert.ok(!text.includes('hunter2'));
      assert.equal(text.match(/\$enc/gu)?.length, 10);
      const { enrolment_ids } = plain(await sendPlain(from.admin, 'GET', '/services/shop'));
      for (const id of enrolment_ids as string[]) assert.ok(!text.includes(id));
    }
  });

  for (const format of ['yaml', 'json'] as const) {
    test(`as ${format}, from SQLite to SQLite`, async () => {
      await using to = await startWorld({ kmsEnv });
      await checkSame(from, to, format);
    });
  }

  test('from SQLite to MongoDB and back', { skip }, async () => {
    await using mongo = await mongoForTests();
    const [hosts, options = ''] = mongo.url.split('/?');
    const env = {
      STORE_URL: `${hosts?.replace(/\/$/u, '')}/${mongo.freshDatabase()}?${options}`,
      ...(mongo.user === undefined ? {} : { STORE_USER: mongo.user }),
      ...(mongo.password === undefined ? {} : { STORE_PASSWORD: mongo.password }),
    };
    await using to = await startWorld({ kmsEnv, env });
    await checkSame(from, to, 'yaml');
    await using back = await startWorld({ kmsEnv });
    await checkSame(to, back, 'json');
  });

  test('leaves a service that is there its enrolments, and takes the types of the file', async () => {
    await using to = await startWorld({ kmsEnv });
    await made(sendPlain(to.admin, 'POST', '/services', { id: 'shop', types: [] }));
    const { id } = await made(sendPlain(to.admin, 'POST', '/services/shop/enrolments'));
    const counts = await imported(to, await exported(from, 'yaml'), 'yaml');
    assert.deepEqual(counts.services, { created: 1, updated: 1, unchanged: 0 });
    const shop = plain(await sendPlain(to.admin, 'GET', '/services/shop'));
    assert.deepEqual(shop.enrolment_ids, [id]);
    assert.deepEqual(shop.types, plain(await sendPlain(from.admin, 'GET', '/services/shop')).types);
    assert.deepEqual(plain(await sendPlain(to.admin, 'GET', '/services/mill')).enrolment_ids, []);
  });

  test('is refused whole where a secret does not open: another key, another place, another kid', async () => {
    await using to = await startWorld();
    const text = await exported(from, 'json');
    const response = await fetch(new URL('/import', to.api.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${to.adminToken}`, 'content-type': FORMATS.json },
      body: text,
    });
    const problem = await response.text();
    assert.equal(response.status, 422, problem);
    assert.match(problem, /line \d+.*nothing was imported/u);
    const empty = '{"kind":"estate","version":2}\n{"kind":"estate","records":0,"version":2}\n';
    assert.equal(await exported(to, 'json'), empty);
  });
});
