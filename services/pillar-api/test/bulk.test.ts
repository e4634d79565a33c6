import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fromPlain, parseValue, toPlain } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, plain, readStream, sendPlain, startWorld } from './support.ts';

const YAML = 'application/yaml';
const LINES = 'application/x-ndjson';
const NONE = { created: 0, updated: 0, unchanged: 0 };

type Report = {
  acceptable: boolean;
  confirm: string;
  clock: number;
  counts: Record<string, { created: number; updated: number; unchanged: number }>;
  diff: Record<string, unknown>[];
  problems: { line: number; code: string; field?: string; detail: string }[];
};

let world: ApiWorld;
before(async () => {
  world = await startWorld();
});
after(() => world?.[Symbol.asyncDispose]());

async function send(method: string, path: string, body?: string, mediaType = YAML, token = world.adminToken) {
  const response = await fetch(new URL(path, world.api.url), {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': mediaType }),
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson =
    /json/u.test(response.headers.get('content-type') ?? '') &&
    !/ndjson/u.test(response.headers.get('content-type') ?? '');
  const value = isJson ? parseValue(text) : undefined;
  return { status: response.status, headers: response.headers, value, text };
}

const report = (answer: { status: number; value: unknown; text: string }): Report => {
  assert.equal(answer.status, 200, answer.text);
  return toPlain(answer.value as never) as Report;
};

const ESTATE = `# What people write.
---
{kind: master, id: salt-a}
---
kind: collection
id: web
name: Web servers
---
kind: minion
master: salt-a
id: web-1
collections: [web]
---
# A document may be a list.
- {kind: pillar, tgt_type: root, name: motd, value: hello}
- {kind: pillar, tgt_type: root, name: mode, value: 0644}
- {kind: pillar, tgt_type: root, name: limits, value: {ratio: 1.0, big: 9223372036854775807, day: 2024-01-01}}
---
kind: pillar
tgt_type: collection
collection_id: web
name: password
is_secret: true
value: hunter2-import
---
{kind: pillar, tgt_type: minion, master: salt-a, minion_id: web-1, name: motd, value: "yes"}
`;

describe('import, export and search', () => {
  test('a dry run shows the diff and writes nothing; confirmed, exactly that is done, with one tick', async () => {
    const clockBefore = report(await send('POST', '/import?dry_run=true', '')).clock;
    const dry = report(await send('POST', '/import?dry_run=true', ESTATE));
    assert.deepEqual([dry.acceptable, dry.problems], [true, []]);
    assert.deepEqual(dry.counts, {
      collections: { created: 1, updated: 0, unchanged: 0 },
      masters: { created: 1, updated: 0, unchanged: 0 },
      minions: { created: 1, updated: 0, unchanged: 0 },
      ...{ inventories: NONE, templates: NONE, tasks: NONE, services: NONE },
      pillars: { created: 5, updated: 0, unchanged: 0 },
    });
    assert.equal(dry.diff.length, 8);
    assert.deepEqual(
      dry.diff.find(({ key }) => key === 'base mode'),
      { line: 13, kind: 'pillar', op: 'create', key: 'base mode', is_secret: false, after: 644 },
    );
    assert.ok(!JSON.stringify(dry).includes('hunter2'));
    assert.equal(report(await send('POST', '/import?dry_run=true', '')).clock, clockBefore);
    const done = report(await send('POST', `/import?confirm=${dry.confirm}`, ESTATE));
    assert.deepEqual([done.clock, done.confirm, done.counts], [clockBefore + 1, dry.confirm, dry.counts]);
    const found = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { name_prefix: 'm' }));
    assert.deepEqual(
      (found.items as { name: string; value: unknown; clock: number }[])
        .map(({ name, value, clock }) => [name, value, clock])
        .sort(),
      [
        ['mode', 644, done.clock],
        ['motd', 'hello', done.clock],
        ['motd', 'yes', done.clock],
      ],
    );
    const again = report(
      await send(
        'POST',
        '/import',
        ESTATE.replace(/is_secret: true\n.*\n/u, (all) => all).split(
          '---\nkind: pillar\ntgt_type: collection',
        )[0],
      ),
    );
    assert.deepEqual(
      [again.clock, again.counts.pillars],
      [done.clock, { created: 0, updated: 0, unchanged: 3 }],
    );
    const ofType = (all: readonly { type: string }[], what: string) =>
      all.filter(({ type }) => type === `colonnade.${what}.v1`) as {
        type: string;
        data: { scopes: string[] };
      }[];
    const events = await waitFor('its events', async () => {
      const all = (await readStream(world.bus, 'EVENTS')).map(({ data }) => JSON.parse(String(data)));
      const isThere = ['estate.imported', 'minion.registered'].every((what) => ofType(all, what).length > 0);
      return isThere ? all : undefined;
    });
    const imported = ofType(events, 'estate.imported');
    assert.equal(imported.length, 1);
    assert.deepEqual(
      imported[0]?.data.scopes.sort(),
      ['base', 'collection:web;user:bootstrap-admin', 'minion_id:web-1;master:salt-a'].sort(),
    );
  });

  test('an export is the same text twice, holds $enc only, and is taken again without a change', async () => {
    const { text, headers } = await send('GET', '/export');
    assert.match(headers.get('content-type') ?? '', /^application\/yaml/u);
    assert.equal((await send('GET', '/export')).text, text);
    assert.ok(!text.includes('hunter2') && text.includes('$enc'));
    assert.match(text, /name: motd\nvalue: "yes"\n/u);
    const lines = (await send('GET', '/export?format=json')).text;
    for (const [body, mediaType] of [
      [text, YAML],
      [lines, LINES],
    ] as const) {
      const { counts, problems } = report(await send('POST', '/import?dry_run=true', body, mediaType));
      assert.deepEqual(problems, []);
      assert.deepEqual(counts.pillars, { created: 0, updated: 0, unchanged: 5 });
      assert.deepEqual(counts.minions, { created: 0, updated: 0, unchanged: 1 });
    }
    const omitted = (await send('GET', '/export?secrets=omit&format=json')).text;
    assert.ok(!omitted.includes('$enc'));
    assert.equal(omitted.trim().split('\n').length, lines.trim().split('\n').length - 1);
  });

  test('an export that was cut is refused wherever it was, and nothing of it is imported; one of version 1 is not', async () => {
    for (const [format, mediaType] of [
      ['json', LINES],
      ['yaml', YAML],
    ] as const) {
      const whole = (await send('GET', `/export?format=${format}`)).text.replaceAll('hello', `cut ${format}`);
      const records = format === 'json' ? whole.split(/(?<=\n)/u) : whole.split(/(?=^---\n)/mu);
      for (let kept = 1; kept < records.length; kept++) {
        const cut = records.slice(0, kept).join('');
        assertRefused(
          await send('POST', '/import', cut, mediaType),
          422,
          'unprocessable',
          new RegExp(`ends after ${kept - 1} records.*it was cut; export again.*nothing was imported`, 'u'),
        );
        const dry = report(await send('POST', '/import?dry_run=true', cut, mediaType));
        assert.equal(dry.acceptable, false);
        assert.match(dry.problems.at(-1)?.detail ?? '', /it was cut/u);
      }
      const hole = records.toSpliced(2, 1).join('');
      const refused = await send('POST', '/import', hole, mediaType);
      assert.match(refused.text, /the export had \d+ records, and here are \d+/u);
      const found = plain(
        await sendPlain(world.admin, 'POST', '/pillars/search', { value: `cut ${format}` }),
      );
      assert.deepEqual(found.items, []);
      // As programs before wrote it: nobody can tell.
      const old = records
        .slice(0, -1)
        .join('')
        .replace(/("?version"?: ?)2/u, '$11')
        .replaceAll('cut ', 'old ');
      report(await send('POST', '/import?dry_run=true', old, mediaType));
    }
  });

  test('a secret that was deleted comes back from an export, sealed as it was', async () => {
    const lines = (await send('GET', '/export?format=json')).text.split('\n');
    const line = lines.find((one) => one.includes('$enc')) ?? '';
    const found = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { name: 'password' }));
    const [{ pid, etag } = { pid: '', etag: '' }] = found.items as { pid: string; etag: string }[];
    assert.equal(
      (await sendPlain(world.admin, 'DELETE', `/pillars/${pid}`, undefined, { 'if-match': etag })).status,
      204,
    );
    assertRefused(
      await send('POST', '/import', line.replace('"password"', '"other"'), LINES),
      422,
      'value_invalid',
      /line 1/u,
    );
    report(await send('POST', '/import', line, LINES));
    const back = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { name: 'password' }));
    const [item] = back.items as { pid: string; value: unknown }[];
    assert.equal(item?.value, '*******');
    assert.equal(
      plain(await sendPlain(world.admin, 'POST', `/pillars/${item?.pid}/reveal`)).value,
      'hunter2-import',
    );
  });

  test('secrets are replaced only where the caller says so, and never become plain', async () => {
    const secret = (value: string, mark = 'true') =>
      `{kind: pillar, tgt_type: collection, collection_id: web, name: password, is_secret: ${mark}, value: ${value}}`;
    assertRefused(await send('POST', '/import', secret('new')), 409, 'secret_immutable', /line 1: value/u);
    assertRefused(
      await send('POST', '/import?replace_secrets=true', secret('new', 'false')),
      422,
      'unprocessable',
      /is_secret/u,
    );
    const { counts } = report(await send('POST', '/import?replace_secrets=true', secret('renewed')));
    assert.equal(counts.pillars?.updated, 1);
    const found = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { name: 'password' }));
    const [{ pid } = { pid: '' }] = found.items as { pid: string }[];
    assert.equal(plain(await sendPlain(world.admin, 'POST', `/pillars/${pid}/reveal`)).value, 'renewed');
  });

  test('a confirm is refused when the file or what it touches has changed', async () => {
    const file = '{kind: pillar, tgt_type: root, name: motd, value: third}';
    const { confirm } = report(await send('POST', '/import?dry_run=true', file));
    const other = await send('POST', `/import?confirm=${confirm}`, file.replace('third', 'fourth'));
    assertRefused(other, 412, 'precondition_failed', /dry run/u);
    const found = plain(
      await sendPlain(world.admin, 'POST', '/pillars/search', { name: 'motd', tgt_type: 'root' }),
    );
    const [{ pid, etag } = { pid: '', etag: '' }] = found.items as { pid: string; etag: string }[];
    const put = await sendPlain(
      world.admin,
      'PUT',
      `/pillars/${pid}`,
      { value: 'meanwhile' },
      { 'if-match': etag },
    );
    assert.equal(put.status, 200);
    assertRefused(
      await send('POST', `/import?confirm=${confirm}`, file),
      412,
      'precondition_failed',
      /dry run/u,
    );
    assert.equal(plain(await sendPlain(world.admin, 'GET', `/pillars/${pid}`)).value, 'meanwhile');
  });

  test('what is wrong is told with its line, a dry run tells all of it, and nothing is imported', async () => {
    const file = [
      '{kind: pillar, tgt_type: root, name: fine, value: 1}',
      'kind: pillar\ntgt_type: root\nname: keys\nvalue:\n  80: x',
      '{kind: pillar, tgt_type: root, name: colonnade, value: 1}',
      '{kind: pillar, tgt_type: collection, collection_id: nowhere, name: a, value: 1}',
      '{kind: pillar, tgt_type: minion, master: salt-a, minion_id: nobody, name: a, value: 1}',
      '{kind: pillar, tgt_type: root, name: fine, value: 2}',
      '{kind: pillar, tgt_type: root, name: enc, value: {$enc: {}}}',
      '{kind: flower}',
      'just text',
      '{kind: template, id: t, name: t, schema: {type: flower}}',
      '{kind: task, id: k, tpl_id: t, state: running, collections: [web]}',
      '{kind: task, id: k, tpl_id: t, state: failed, collections: [web], ended_at: "2026-13-01T00:00:00.000Z"}',
      '{kind: task, id: k, tpl_id: t, state: failed}',
      '{kind: inventory, master: nobody, minion_id: w, facts: {}}',
      '{kind: pillar, tgt_type: root, name: of, user: eve, value: 1}',
      '{kind: service, id: shop, types: [{type: order.placed, schema: {type: flower}}]}',
      '{kind: service, id: shop, types: [{type: colonnade.pillar}]}',
      '{kind: service, id: shop, types: [], enrolment_ids: [aaaaaaaaaaaaaaaa]}',
    ].map((one) => `---\n${one}\n`);
    const dry = report(await send('POST', '/import?dry_run=true', file.join('')));
    assert.equal(dry.acceptable, false);
    const told = dry.problems.map(({ line, code }) => [line, code]);
    assert.deepEqual(told, [
      [3, 'bad_request'],
      [9, 'unprocessable'],
      [11, 'unprocessable'],
      [13, 'unknown_minion'],
      [15, 'unprocessable'],
      [17, 'value_invalid'],
      [19, 'unprocessable'],
      [21, 'unprocessable'],
      [23, 'unprocessable'],
      [25, 'unprocessable'],
      [27, 'unprocessable'],
      [29, 'unprocessable'],
      [31, 'unknown_master'],
      [33, 'unprocessable'],
      [35, 'unprocessable'],
      [37, 'unprocessable'],
      [39, 'unprocessable'],
    ]);
    assert.match(dry.problems[0]?.detail ?? '', /line 8, column 3: a key that is an integer/u);
    for (const bad of file.slice(1)) {
      const body = `${file[0]}${bad}`;
      const answer = await send('POST', '/import', body);
      assert.ok([409, 422].includes(answer.status), answer.text);
      assert.match(answer.text, /line 3.*nothing was imported/u);
    }
    const { items } = plain(await sendPlain(world.admin, 'POST', '/pillars/search', { name: 'fine' }));
    assert.deepEqual(items, []);
    assertRefused(
      await send('POST', '/import', '{}', 'application/json'),
      415,
      'unsupported_media_type',
      /yaml/u,
    );
    assertRefused(
      await send('POST', '/import', '\u00ff', 'text/plain'),
      415,
      'unsupported_media_type',
      /json|yaml/u,
    );
    assertRefused(
      await send('POST', '/pillars/list', '{}', YAML),
      415,
      'unsupported_media_type',
      /application\/json/u,
    );
    assertRefused(await send('POST', '/import?format=json', 'a: 1'), 422, 'unprocessable', /format/u);
    assertRefused(
      await send('POST', '/import', `--- |\n${'  x\n'.repeat(200_000)}`),
      413,
      'too_large',
      /record in line 1/u,
    );
  });

  test('each kind of record needs its own permission, names Salt acts on theirs', async () => {
    const { token } = await world.tokenOf(['editor']);
    const as = (body: string) => send('POST', '/import', body, YAML, token);
    assert.equal((await as('{kind: pillar, tgt_type: root, name: by_editor, value: 1}')).status, 200);
    assert.equal((await as('{kind: master, id: salt-a}')).status, 200, 'what changes nothing needs nothing');
    for (const body of [
      '{kind: master, id: salt-b}',
      '{kind: collection, id: c2, name: x, owner: somebody}',
      '{kind: pillar, tgt_type: root, name: schedule, value: {}}',
    ]) {
      assertRefused(await as(body), 403, 'forbidden', /needs the permission/u);
    }
    const sealed =
      (await send('GET', '/export?format=json')).text.split('\n').find((one) => one.includes('$enc')) ?? '';
    const moved = sealed.replace('"password"', '"moved"');
    assertRefused(await send('POST', '/import', moved, LINES, token), 403, 'forbidden', /secret:reveal/u);
    assertRefused(await send('GET', '/export', undefined, YAML, token), 403, 'forbidden', /secret:reveal/u);
    assert.equal((await send('GET', '/export?secrets=omit', undefined, YAML, token)).status, 200);
    const viewer = (await world.tokenOf(['viewer'])).token;
    assertRefused(
      await send('POST', '/import?dry_run=true', '', YAML, viewer),
      403,
      'forbidden',
      /pillar:write/u,
    );
  });

  test('a search combines what it is asked for, and shows no secret', async () => {
    const search = async (body: object) => {
      const { items } = plain(await sendPlain(world.admin, 'POST', '/pillars/search', body));
      return (items as { pillarenv: string; name: string }[])
        .map(({ pillarenv, name }) => `${pillarenv} ${name}`)
        .sort();
    };
    assert.deepEqual(await search({ value: '"ratio":1.0' }), ['base limits']);
    assert.deepEqual(await search({ value: 'renewed' }), []);
    assert.deepEqual(await search({ created_by: 'editor' }), ['base by_editor']);
    assert.deepEqual(await search({ scopes: ['minion_id:web-1;master:salt-a'], name: 'motd' }), [
      'minion_id:web-1;master:salt-a motd',
    ]);
    assert.deepEqual(await search({ since: '2999-01-01T00:00:00.000Z' }), []);
    assert.ok((await search({ until: '2999-01-01T00:00:00.000Z', tgt_type: 'collection' })).length === 1);
    for (const since of ['yesterday', '2024-02-30T00:00:00.000Z', '2024-13-01T00:00:00.000Z']) {
      const answer = await sendPlain(world.admin, 'POST', '/pillars/search', { since });
      assertProblem(answer, 422, 'unprocessable', 'since');
    }
  });
});

function assertRefused(
  answer: { status: number; value: unknown; text: string },
  status: number,
  code: string,
  detail: RegExp,
) {
  const problem = toPlain((answer.value ?? fromPlain({})) as never) as { code?: string; detail?: string };
  assert.deepEqual([answer.status, problem.code], [status, code], answer.text);
  assert.match(problem.detail ?? '', detail);
}
