import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EVENTS_STREAM } from '@colonnade/contracts';
import type { ApiAnswer, ApiClient } from '@colonnade/embedded';
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

const SECRET = 'correct horse battery staple';
const SCHEMA = {
  type: 'object',
  properties: {
    version: { type: 'string', pattern: '^[0-9.]+$' },
    port: { type: 'integer', minimum: 1 },
    password: { type: 'string', minLength: 8 },
  },
  required: ['version'],
  additionalProperties: false,
};
const MINIONS = [{ master: 'm1', minion_id: 'web-1' }];

type Named = { pid: string; name: string; value: unknown; is_secret: boolean };

describe('templates and tasks over HTTP', () => {
  let world: ApiWorld;
  let ann: ApiClient;
  before(async () => {
    world = await startWorld();
    ann = await world.as(['editor', 'secret-reader'], 'ann');
    await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
    const fresh = { 'if-none-match': '*' };
    await sendPlain(world.admin, 'POST', '/collections', { id: 'web', name: 'web' });
    await sendPlain(world.admin, 'PUT', '/masters/m1/minions/web-1', { collections: ['web'] }, fresh);
    const made = await template('deploy');
    assert.equal(made.status, 201, JSON.stringify(plain(made)));
  });
  after(() => world[Symbol.asyncDispose]());

  const template = (id: string, schema: unknown = SCHEMA) =>
    sendPlain(ann, 'POST', '/tasks/templates', { id, name: `n-${id}`, schema });
  const task = (more: object, client = ann, headers?: Record<string, string>) =>
    sendPlain(
      client,
      'POST',
      '/tasks',
      { tpl_id: 'deploy', minions: MINIONS, pillars: [], ...more },
      headers,
    );
  const forTarget = async (query: string): Promise<Named[]> =>
    plain(await ann.send('GET', `/pillars/for-target?${query}`)).items as Named[];
  const reveal = async (pid: string) => plain(await ann.send('POST', `/pillars/${pid}/reveal`)).value;
  const withDefaults = async (id: string, client = ann) =>
    plain(await client.send('GET', `/tasks/template/${id}/with-defaults`));
  const ok = (answer: ApiAnswer, status: number) => {
    assert.equal(answer.status, status, JSON.stringify(plain(answer)));
    return plain(answer);
  };

  test('a template is made, read, changed under its ETag, and refused when its schema is none', async () => {
    const made = await template('edit', { type: 'object' });
    const etag = etagOfAnswer(made);
    assert.equal(made.headers.get('location'), '/tasks/templates/edit');
    assertProblem(await template('edit'), 409, 'already_exists');
    assertProblem(await template('bad', { type: 'int' }), 422, 'unprocessable', 'schema');
    assertProblem(await template('bad', { $ref: 'http://127.0.0.1/x' }), 422, 'unprocessable', 'schema');
    assertProblem(await ann.send('GET', '/tasks/templates/bad'), 404, 'not_found');
    const change = { name: 'two', schema: { type: 'object', title: 't' } };
    const put = (headers?: Record<string, string>) =>
      sendPlain(ann, 'PUT', '/tasks/templates/edit', change, headers);
    assertProblem(await put(), 428, 'precondition_required');
    const changed = await put({ 'if-match': etag });
    assert.deepEqual(ok(changed, 200).schema, change.schema);
    assertProblem(await put({ 'if-match': etag }), 412, 'precondition_failed');
    assert.deepEqual(plain(await ann.send('GET', '/tasks/templates/edit')), plain(changed));
    const listed = plain(await ann.send('GET', '/tasks/templates')).items as { id: string }[];
    assert.deepEqual(
      listed.map(({ id }) => id),
      ['deploy', 'edit'],
    );
    const gone = await ann.send('DELETE', '/tasks/templates/edit', undefined, {
      'if-match': etagOfAnswer(changed),
    });
    assert.equal(gone.status, 204);
  });

  test('create_for_task: pillars of the task, and of the template, each secret sealed for its own place', async () => {
    const pillars = [
      { name: 'version', value: '1.2' },
      { name: 'password', value: SECRET, is_secret: true },
    ];
    const made = ok(await task({ pillars, save_as_defaults: true, expires_in_s: 3600 }), 201);
    const { id, pillarenv, state, live } = made as Record<string, string>;
    assert.deepEqual([pillarenv, state, live], [`task:${id}`, 'created', true]);
    const own = await forTarget(`tgt_type=task&tgt_id=${id}`);
    const saved = await forTarget('tgt_type=task_tpl&tgt_id=deploy&user_sub=ann');
    for (const found of [own, saved]) {
      const shown = found.map(({ name, value }) => [name, value]).sort();
      assert.deepEqual(shown, [
        ['password', '*******'],
        ['version', '1.2'],
      ]);
      assert.equal(await reveal(found.find(({ name }) => name === 'password')?.pid ?? ''), SECRET);
    }
    assert.deepEqual(await forTarget('tgt_type=task_tpl&tgt_id=deploy&user_sub=bob'), []);
    assert.deepEqual(
      await forTarget('tgt_type=task_tpl&tgt_id=deploy'),
      [],
      'without a user: another environment',
    );
    assert.equal((await forTarget(`tgt_type=task&tgt_id=${id}&pillarenv=task:${id}`)).length, 2);

    const got = await withDefaults('deploy');
    assert.deepEqual([got.applied, got.secrets, got.left_out], [['version'], ['password'], []]);
    const version = { ...SCHEMA.properties.version, default: '1.2' };
    assert.deepEqual(got.schema, { ...SCHEMA, properties: { ...SCHEMA.properties, version } });
    assert.deepEqual((await withDefaults('deploy', world.admin)).schema, SCHEMA, 'of another user: nothing');

    const again = ok(await task({ from_defaults: ['version', 'password'] }), 201);
    const [taken] = (again.pillars as Named[]).filter(({ name }) => name === 'password');
    assert.equal(await reveal(taken?.pid ?? ''), SECRET);
    const editor = await world.as(['editor'], 'ann');
    assertProblem(await task({ from_defaults: ['version', 'password'] }, editor), 403, 'forbidden');
  });

  test('a template goes with the defaults of everybody, more than a page of them', async () => {
    ok(await template('wide', { type: 'object' }), 201);
    const pillars = Array.from({ length: 200 }, (_, i) => ({ name: `d_${i}`, value: i }));
    for (const user of ['u1', 'u2', 'u3']) {
      const client = await world.as(['editor'], user);
      ok(await sendPlain(client, 'PUT', '/tasks/template/wide/defaults', { pillars }), 200);
    }
    const found = await ann.send('GET', '/tasks/templates/wide');
    const gone = await ann.send('DELETE', '/tasks/templates/wide', undefined, {
      'if-match': etagOfAnswer(found),
    });
    assert.equal(gone.status, 204, JSON.stringify(plain(gone)));
    for (const user of ['u1', 'u2', 'u3'])
      assert.deepEqual(await forTarget(`tgt_type=task_tpl&tgt_id=wide&user_sub=${user}`), []);
  });

  test('defaults are set, replaced and removed, a secret too; one that no longer fits is told', async () => {
    ok(await template('own', { properties: { a: { type: 'integer' }, s: true } }), 201);
    const put = (body: object) => sendPlain(ann, 'PUT', '/tasks/template/own/defaults', body);
    const values = async (body: object) =>
      (ok(await put(body), 200).items as Named[]).map(({ name, value }) => [name, value]);
    assert.deepEqual(await values({ pillars: [{ name: 'a', value: 1 }] }), [['a', 1]]);
    const secret = { name: 's', value: SECRET, is_secret: true };
    assert.deepEqual(await values({ pillars: [{ name: 'a', value: 'x' }, secret] }), [
      ['a', 'x'],
      ['s', '*******'],
    ]);
    const got = await withDefaults('own');
    assert.deepEqual([got.left_out, got.secrets], [[{ name: 'a', reason: 'breaks_schema' }], ['s']]);
    const [first] = await forTarget('tgt_type=task_tpl&tgt_id=own&user_sub=ann').then((all) =>
      all.filter(({ name }) => name === 's'),
    );
    await values({ pillars: [{ ...secret, value: 'another one' }] });
    const [second] = (plain(await ann.send('GET', '/tasks/template/own/defaults')).items as Named[]).filter(
      ({ name }) => name === 's',
    );
    assert.notEqual(second?.pid, first?.pid);
    assert.equal(await reveal(second?.pid ?? ''), 'another one');
    assert.deepEqual(await values({ pillars: [{ name: 's', value: 2 }], remove: ['a'] }), [['s', 2]]);
    assertProblem(await put({ pillars: [secret, secret] }), 422, 'unprocessable', 'pillars');
    const nested = [{ name: 'a', value: { $enc: {} }, is_secret: true }];
    assertProblem(await put({ pillars: nested }), 422, 'value_invalid');
    const before = await ann.send('GET', '/tasks/templates/own');
    const tag = { 'if-match': etagOfAnswer(before) };
    assert.equal((await ann.send('DELETE', '/tasks/templates/own', undefined, tag)).status, 204);
    assert.deepEqual(await forTarget('tgt_type=task_tpl&tgt_id=own&user_sub=ann'), []);
  });

  test('what is refused makes nothing, and repeats no value of a secret', async () => {
    const count = async () => (plain(await ann.send('GET', '/tasks?limit=500')).items as unknown[]).length;
    const before = await count();
    const defaults = await forTarget('tgt_type=task_tpl&tgt_id=deploy&user_sub=ann');
    const version = { name: 'version', value: '1' };
    const short = { name: 'password', value: 'hunter2', is_secret: true };
    const cases: [object, string][] = [
      [{ tpl_id: 'nope' }, 'tpl_id'],
      [{ pillars: [] }, 'pillars'],
      [{ pillars: [{ name: 'version', value: 1 }] }, 'pillars'],
      [{ pillars: [version, { name: 'other', value: 1 }] }, 'pillars'],
      [{ pillars: [version, short], save_as_defaults: true }, 'pillars'],
      [{ pillars: [version], minions: [] }, 'minions'],
      [{ pillars: [version], collections: ['nope'] }, 'collections.0'],
      [{ pillars: [version], from_defaults: ['port'] }, 'from_defaults.0'],
      [{ pillars: [version], from_defaults: ['version'] }, 'from_defaults'],
      [{ pillars: [version], expires_in_s: 0 }, 'expires_in_s'],
    ];
    for (const [body, field] of cases) {
      const answer = await task(body);
      assertProblem(answer, 422, 'unprocessable', field);
      assert.ok(!JSON.stringify(plain(answer)).includes('hunter2'));
    }
    const stranger = { pillars: [version], minions: [{ master: 'm1', minion_id: 'nope' }] };
    assertProblem(await task(stranger), 422, 'unknown_minion');
    assertProblem(await task({ pillars: [{ name: 'schedule', value: {} }] }), 403, 'forbidden');
    assert.equal(await count(), before);
    assert.deepEqual(await forTarget('tgt_type=task_tpl&tgt_id=deploy&user_sub=ann'), defaults);
    for (const query of [
      'tgt_type=task&tgt_id=a&pillarenv=task:a,base',
      'tgt_type=task',
      'tgt_type=x&tgt_id=a',
    ]) {
      assertProblem(await ann.send('GET', `/pillars/for-target?${query}`), 422, 'unprocessable');
    }
  });

  test('a task runs and ends, forwards only; its pillars can then be made no more, and go with it', async () => {
    const pillars = [{ name: 'version', value: '7' }];
    const key = { 'idempotency-key': 'once' };
    const made = await task({ pillars, collections: ['web'] }, ann, key);
    const id = String(ok(made, 201).id);
    const replay = await task({ pillars, collections: ['web'] }, ann, key);
    // All of it but the identity: no token is kept, so the same request again gets one more of the same task.
    const { identity: first, ...kept } = plain(made);
    const { identity: second, ...again } = plain(replay);
    assert.deepEqual([replay.headers.get('idempotent-replayed'), again], ['true', kept]);
    assert.ok(first !== null && second !== null);
    const state = (to: string, headers?: Record<string, string>) =>
      sendPlain(ann, 'POST', `/tasks/${id}/state`, { state: to }, headers);
    const added = { tgt_type: 'task', tgt_id: id, name: 'late', value: 1 };
    assert.equal(ok(await sendPlain(ann, 'POST', '/pillars', added), 201).pillarenv, `task:${id}`);
    assert.equal(ok(await state('running'), 200).live, true);
    assertProblem(await state('failed', { 'if-match': etagOfAnswer(made) }), 412, 'precondition_failed');
    const running = plain(await ann.send('GET', '/tasks?state=running&tpl_id=deploy')).items as {
      id: string;
    }[];
    assert.deepEqual(
      running.map((one) => one.id),
      [id],
    );
    const early = await ann.send('GET', `/tasks/${id}`);
    const tag = { 'if-match': etagOfAnswer(early) };
    assertProblem(await ann.send('DELETE', `/tasks/${id}`, undefined, tag), 409, 'conflict');
    const ended = await state('succeeded', tag);
    assert.equal(ok(ended, 200).live, false);
    assertProblem(await state('running'), 409, 'conflict');
    assertProblem(await sendPlain(ann, 'POST', '/pillars', { ...added, name: 'later' }), 409, 'conflict');
    const gone = await ann.send('DELETE', `/tasks/${id}`, undefined, { 'if-match': etagOfAnswer(ended) });
    assert.equal(gone.status, 204);
    assert.deepEqual(await forTarget(`tgt_type=task&tgt_id=${id}`), []);
    const wanted = ['task.created', 'task.state_changed', 'task.deleted', 'template.created'];
    await waitFor('events', async () => {
      const subjects = (await readStream(world.bus, EVENTS_STREAM)).map(({ subject }) => subject);
      return wanted.every((type) => subjects.includes(`colonnade.events.v1.${type}`));
    });
    const published = (await readStream(world.bus, EVENTS_STREAM)).map(({ data }) => data.toString());
    const recorded = JSON.stringify(await auditRecords(world.bus), (_, v) =>
      typeof v === 'bigint' ? String(v) : v,
    );
    assert.ok(published.join().includes('"tpl_id":"deploy"') && recorded.includes('/tasks'));
    for (const text of [published.join(), recorded]) assert.ok(!text.includes(SECRET));
  });
});
