import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { decode, zCloudEvent } from '@colonnade/contracts';
import type { ApiAnswer } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { findTraces, searchFolder } from '../../../test/support/search-traces.ts';
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

describe('between plain and secret', () => {
  let world: ApiWorld;

  before(async () => {
    world = await startWorld({ env: { LOG_LEVEL: 'trace' } });
  });
  after(() => world[Symbol.asyncDispose]());

  const create = (name: string, value: unknown, isSecret = false) =>
    sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value, is_secret: isSecret });
  const ask = (pid: unknown, act: string, etag?: string, client = world.admin) =>
    client.send('POST', `/pillars/${pid}/${act}`, undefined, etag === undefined ? {} : { 'if-match': etag });
  const pidOf = (answer: ApiAnswer) => plain(answer).pid;
  const history = async (pid: unknown) => {
    const { items } = plain(await world.admin.send('GET', `/pillars/${pid}/versions`));
    return (items as Record<string, unknown>[]).map(({ op, value, purged }) => [op, value, purged]);
  };
  const put = (pid: unknown, value: unknown, etag: string) =>
    sendPlain(world.admin, 'PUT', `/pillars/${pid}`, { value }, { 'if-match': etag });

  test('a plain pillar is sealed, and nothing of its values is left in store, logs, events and records', async () => {
    const exposed = ['exposed-at-first-0001', 'exposed-later-000002'];
    const made = await create('was-plain', { password: exposed[0] });
    const changed = await put(pidOf(made), exposed[1], etagOfAnswer(made));
    const editor = await world.as(['editor']);
    const sealed = await ask(pidOf(made), 'seal', etagOfAnswer(changed), editor);
    assert.deepEqual(
      [sealed.status, plain(sealed).value, plain(sealed).is_secret],
      [200, '*******', true],
      JSON.stringify(plain(sealed)),
    );
    const files = await searchFolder(world.dir, exposed);
    assert.ok(files.files >= 4);
    assert.deepEqual(files.traces, []);
    assert.deepEqual(await history(pidOf(made)), [
      ['create', null, true],
      ['update', null, true],
      ['update', '*******', false],
    ]);
    assert.equal(plain(await ask(pidOf(made), 'reveal')).value, exposed[1]);
    const got = await world.admin.send('GET', `/pillars/${pidOf(made)}`);
    assert.equal(etagOfAnswer(got), etagOfAnswer(sealed));
    await waitFor('its event', async () => {
      const events = (await readStream(world.bus, 'EVENTS')).map((m) => decode(zCloudEvent, m.data));
      const last = events.filter((e) => e.subject === `/pillars/${pidOf(made)}`).at(-1);
      return (toPlain(last?.data ?? null) as { is_secret?: boolean }).is_secret === true;
    });
    for (const stream of ['EVENTS', 'AUDIT']) {
      const messages = await readStream(world.bus, stream);
      assert.deepEqual(
        messages.flatMap((m) => findTraces(stream, m.data, exposed)),
        [],
      );
    }
  });

  test('a secret is unsealed by who may both reveal and write, on record before it happens', async () => {
    const made = await create('was-secret', { a: [1, 'x'] }, true);
    const pid = pidOf(made);
    for (const roles of [['editor'], ['secret-reader']]) {
      assertProblem(await ask(pid, 'unseal', etagOfAnswer(made), await world.as(roles)), 403, 'forbidden');
    }
    const both = await world.as(['editor', 'secret-reader'], 'bea');
    const open = await ask(pid, 'unseal', etagOfAnswer(made), both);
    assert.deepEqual([open.status, plain(open).value, plain(open).is_secret], [200, { a: [1, 'x'] }, false]);
    assert.deepEqual(await history(pid), [
      ['create', '*******', false],
      ['update', { a: [1, 'x'] }, false],
    ]);
    const records = (await auditRecords(world.bus)).filter((r) => r.auditID === open.headers.get('audit-id'));
    assert.deepEqual(
      records.map(({ stage, user, objectRef }) => [stage, user.username, objectRef?.subresource]),
      [
        ['RequestReceived', 'bea', 'unseal'],
        ['ResponseComplete', 'bea', 'unseal'],
      ],
    );
  });

  test('PUT on a secret names the way, and it leads there', async () => {
    const made = await create('rotated', 'old', true);
    const pid = pidOf(made);
    const refused = await put(pid, 'new', etagOfAnswer(made));
    assertProblem(refused, 409, 'secret_immutable');
    assert.ok(String(plain(refused).detail).includes(`POST /pillars/${pid}/replace`));
    const headers = { 'if-match': etagOfAnswer(made) };
    const replaced = await sendPlain(
      world.admin,
      'POST',
      `/pillars/${pid}/replace`,
      { value: 'new' },
      headers,
    );
    assert.equal(replaced.status, 200);
    assert.equal(plain(await ask(pid, 'reveal')).value, 'new');
  });

  test('not without If-Match, not from another state, not twice, and not of nothing', async () => {
    const made = await create('steady', 1);
    const pid = pidOf(made);
    assertProblem(await ask(pid, 'seal'), 428, 'precondition_required');
    assertProblem(await ask(pid, 'unseal'), 428, 'precondition_required');
    assertProblem(await ask(pid, 'unseal', etagOfAnswer(made)), 409, 'conflict');
    const sealed = await ask(pid, 'seal', etagOfAnswer(made));
    assertProblem(await ask(pid, 'seal', etagOfAnswer(made)), 412, 'precondition_failed');
    assertProblem(await ask(pid, 'seal', etagOfAnswer(sealed)), 409, 'conflict');
    assertProblem(await ask('nothing', 'seal', '*'), 404, 'not_found');
    const rivals = await Promise.all([1, 2, 3].map(() => ask(pid, 'unseal', etagOfAnswer(sealed))));
    assert.deepEqual(rivals.map(({ status }) => status).sort(), [200, 412, 412]);
    const control = await create('schedule', 1);
    const editor = await world.as(['editor']);
    assertProblem(await ask(pidOf(control), 'seal', etagOfAnswer(control), editor), 403, 'forbidden');
  });

  test('the history of a pillar that was deleted can be emptied, by an admin', async () => {
    const exposed = 'exposed-and-deleted-03';
    const made = await create('mistake', exposed);
    const pid = pidOf(made);
    await world.admin.send('DELETE', `/pillars/${pid}`, undefined, { 'if-match': etagOfAnswer(made) });
    assert.equal((await create('mistake', exposed, true)).status, 201);
    assert.ok((await searchFolder(world.dir, [exposed])).traces.length > 0);
    assertProblem(await ask(pid, 'purge-history', undefined, await world.as(['editor'])), 403, 'forbidden');
    const purged = await ask(pid, 'purge-history');
    assert.equal(purged.status, 204);
    assert.deepEqual((await searchFolder(world.dir, [exposed])).traces, []);
    assert.deepEqual(await history(pid), [
      ['create', null, true],
      ['delete', null, true],
    ]);
    assertProblem(await ask('nothing', 'purge-history'), 404, 'not_found');
    const records = (await auditRecords(world.bus)).filter(
      (r) => r.auditID === purged.headers.get('audit-id'),
    );
    assert.deepEqual(
      records.map(({ objectRef, responseStatus }) => [objectRef?.name, responseStatus?.code]),
      [
        [pid, undefined],
        [pid, 204],
      ],
    );
  });
});
