import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { decode, LIMITS, zCloudEvent } from '@colonnade/contracts';
import type { ApiAnswer } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { searchFolder } from '../../../test/support/search-traces.ts';
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

describe('the history of a pillar', () => {
  let world: ApiWorld;
  let names = 0;

  before(async () => {
    world = await startWorld({
      env: { LOG_LEVEL: 'trace', HISTORY_KEEP_VERSIONS: '3', HISTORY_RUN_MS: '0' },
    });
    for (const id of ['m1', 'm2']) await sendPlain(world.admin, 'POST', '/masters', { id });
  });
  after(() => world[Symbol.asyncDispose]());

  const fresh = () => {
    names += 1;
    return `name-${names}`;
  };
  const create = (name: string, value: unknown, more: object = {}) =>
    sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value, ...more });
  const act = (pid: unknown, verb: string, body?: unknown, etag?: string, client = world.admin) =>
    sendPlain(
      client,
      'POST',
      `/pillars/${pid}/${verb}`,
      body,
      etag === undefined ? {} : { 'if-match': etag },
    );
  const put = (answer: ApiAnswer, value: unknown) =>
    sendPlain(
      world.admin,
      'PUT',
      `/pillars/${pidOf(answer)}`,
      { value },
      { 'if-match': etagOfAnswer(answer) },
    );
  const remove = (answer: ApiAnswer) =>
    world.admin.send('DELETE', `/pillars/${pidOf(answer)}`, undefined, { 'if-match': etagOfAnswer(answer) });
  const get = async (path: string, client = world.admin) => client.send('GET', path);
  const pidOf = (answer: ApiAnswer) => plain(answer).pid as string;
  const clockOf = (answer: ApiAnswer) => Number(plain(answer).clock);
  const reveal = async (pid: unknown) => plain(await act(pid, 'reveal')).value;
  const putMinion = (master: string, id: string, collections: string[] = []) =>
    sendPlain(
      world.admin,
      'PUT',
      `/masters/${master}/minions/${id}`,
      { collections },
      { 'if-none-match': '*' },
    );
  const opsOf = async (pid: unknown) => {
    const { items } = plain(await get(`/pillars/${pid}/versions`));
    return (items as { op: string; name: string; value: unknown }[]).map(({ op, name, value }) => [
      op,
      name,
      value,
    ]);
  };
  const revive = (pid: unknown, tick: number) =>
    sendPlain(world.admin, 'POST', `/pillars/${pid}/restore`, { tick }, { 'if-none-match': '*' });

  test('one version is shown, and what differs between two, of a plain pillar', async () => {
    const made = await create(fresh(), { a: [1, 2], gone: 'x' });
    const changed = await put(made, { a: [1, 2.5], new: null });
    const pid = pidOf(made);
    const one = plain(await get(`/pillars/${pid}/versions/${clockOf(made)}`));
    assert.deepEqual([one.value, one.op, one.pillarenv], [{ a: [1, 2], gone: 'x' }, 'create', 'base']);
    assertProblem(await get(`/pillars/${pid}/versions/1`), 404, 'not_found');
    assertProblem(await get(`/pillars/${pid}/versions/x`), 422, 'unprocessable');
    const diff = plain(await get(`/pillars/${pid}/diff?from=${clockOf(made)}`));
    assert.deepEqual(diff.changes, [
      { path: '/a/1', before: 2, after: 2.5 },
      { path: '/gone', before: 'x' },
      { path: '/new', after: null },
    ]);
    assert.deepEqual([diff.value_changed, (diff.to as { clock: number }).clock], [true, clockOf(changed)]);
    const back = plain(await get(`/pillars/${pid}/diff?from=${clockOf(changed)}&to=${clockOf(made)}`));
    assert.deepEqual((back.changes as unknown[])[0], { path: '/a/1', before: 2.5, after: 2 });
    assertProblem(await get(`/pillars/${pid}/diff?from=1`), 422, 'unprocessable', 'from');
    assertProblem(await get('/pillars/nothing/diff?from=1'), 404, 'not_found');
  });

  test('a diff of secrets says whether they are sealed anew, and shows nothing', async () => {
    const made = await create(fresh(), 'hidden-value-0001', { is_secret: true });
    const pid = pidOf(made);
    const next = await act(pid, 'replace', { value: 'hidden-value-0002' }, etagOfAnswer(made));
    const diff = await get(`/pillars/${pid}/diff?from=${clockOf(made)}&to=${clockOf(next)}`);
    const same = await get(`/pillars/${pid}/diff?from=${clockOf(made)}&to=${clockOf(made)}`);
    assert.deepEqual([plain(diff).value_changed, plain(diff).changes], [true, []]);
    assert.equal(plain(same).value_changed, false);
    assert.ok(!JSON.stringify([plain(diff), plain(same)]).includes('ct_b64'));
  });

  test('a secret is replaced under its pid, by an editor, and its old value comes back by a restore', async () => {
    const made = await create(fresh(), 'old-secret', { is_secret: true });
    const pid = pidOf(made);
    const editor = await world.as(['editor']);
    assertProblem(await act(pid, 'replace', { value: 'x' }), 428, 'precondition_required');
    const replaced = await act(pid, 'replace', { value: 'new-secret' }, etagOfAnswer(made), editor);
    assert.deepEqual(
      [replaced.status, plain(replaced).value],
      [200, '*******'],
      JSON.stringify(plain(replaced)),
    );
    assert.equal(await reveal(pid), 'new-secret');
    assertProblem(await act(pid, 'replace', { value: 'x' }, etagOfAnswer(made)), 412, 'precondition_failed');
    const restored = await act(pid, 'restore', { tick: clockOf(made) }, etagOfAnswer(replaced), editor);
    assert.equal(restored.status, 200, JSON.stringify(plain(restored)));
    assert.equal(await reveal(pid), 'old-secret');
    const open = await create(fresh(), 1);
    assertProblem(await act(pidOf(open), 'replace', { value: 2 }, etagOfAnswer(open)), 409, 'conflict');
    assertProblem(
      await act(pid, 'replace', { value: { $enc: 1 } }, etagOfAnswer(restored)),
      422,
      'value_invalid',
    );
  });

  test('a pillar that was deleted comes back under its own pid, with an ETag nobody had', async () => {
    const name = fresh();
    const made = await create(name, 'first');
    const changed = await put(made, 'second');
    const pid = pidOf(made);
    assert.equal((await remove(changed)).status, 204);
    assertProblem(await act(pid, 'restore', { tick: clockOf(made) }), 428, 'precondition_required');
    assertProblem(
      await act(pid, 'restore', { tick: clockOf(made) }, etagOfAnswer(made)),
      412,
      'precondition_failed',
    );
    const back = await revive(pid, clockOf(made));
    assert.deepEqual(
      [back.status, plain(back).value, plain(back).pid, plain(back).name],
      [200, 'first', pid, name],
    );
    assert.ok(![etagOfAnswer(made), etagOfAnswer(changed)].includes(etagOfAnswer(back)));
    assert.deepEqual(
      (await opsOf(pid)).map(([op]) => op),
      ['create', 'update', 'delete', 'restore'],
    );
    assertProblem(await revive(pid, clockOf(made)), 412, 'precondition_failed');
    assertProblem(await act(pid, 'restore', { tick: 1 }, etagOfAnswer(back)), 422, 'unprocessable', 'tick');
    await remove(back);
    const twin = await create(name, 'twin');
    const refused = await revive(pid, clockOf(made));
    assertProblem(refused, 409, 'already_exists');
    assert.ok(String(plain(refused).detail).includes(pidOf(twin)));
  });

  test('a restore makes no secret plain and no plain pillar a secret, and brings back nothing that was purged', async () => {
    const made = await create(fresh(), 'sealed-once', { is_secret: true });
    const pid = pidOf(made);
    const open = await act(pid, 'unseal', undefined, etagOfAnswer(made));
    const refused = await act(pid, 'restore', { tick: clockOf(made) }, etagOfAnswer(open));
    assertProblem(refused, 409, 'conflict');
    assert.match(String(plain(refused).detail), /seal/u);
    const sealed = await act(pid, 'seal', undefined, etagOfAnswer(open));
    const purged = await act(pid, 'restore', { tick: clockOf(open) }, etagOfAnswer(sealed));
    assertProblem(purged, 409, 'conflict');
    assert.match(String(plain(purged).detail), /purged/u);
  });

  test('a plain pillar is renamed and moved, keeps its pid, and says so in events', async () => {
    await putMinion('m1', 'mover');
    const [name, other] = [fresh(), fresh()];
    const made = await create(name, { v: 1 });
    const pid = pidOf(made);
    const editor = await world.as(['editor']);
    const renamed = await act(pid, 'rename', { name: other }, etagOfAnswer(made), editor);
    assert.deepEqual([renamed.status, plain(renamed).name, plain(renamed).pid], [200, other, pid]);
    assertProblem(await act(pid, 'rename', { name: 'x' }, etagOfAnswer(made)), 412, 'precondition_failed');
    const target = { tgt_type: 'minion', minion_id: 'mover', master: 'm1' };
    const moved = await act(pid, 'move', target, etagOfAnswer(renamed), editor);
    assert.deepEqual([moved.status, plain(moved).pillarenv], [200, 'minion_id:mover;master:m1']);
    assert.equal(
      etagOfAnswer(await act(pid, 'move', target, etagOfAnswer(moved))),
      etagOfAnswer(moved),
      'once is enough',
    );
    assertProblem(
      await act(pid, 'move', { tgt_type: 'minion', minion_id: 'no', master: 'm1' }, '*'),
      422,
      'unknown_minion',
    );
    assertProblem(await act(pid, 'rename', { name: 'schedule' }, '*', editor), 403, 'forbidden');
    assertProblem(await act(pid, 'rename', { name: '_errors' }, '*'), 422, 'unprocessable');
    const twin = await create(other, 1);
    assertProblem(await act(pid, 'move', { tgt_type: 'root' }, '*'), 409, 'already_exists');
    assert.equal((await remove(twin)).status, 204);
    await waitFor('its events', async () => {
      const events = (await readStream(world.bus, 'EVENTS')).map((m) => decode(zCloudEvent, m.data));
      const found = events.filter((e) => e.subject === `/pillars/${pid}`);
      const from = (type: string) =>
        (toPlain(found.find((e) => e.type.includes(type))?.data ?? null) as { from?: object } | null)?.from;
      if (from('moved') === undefined) return false;
      assert.deepEqual({ ...from('renamed') }, { tgt_type: 'root', tgt_id: 'root', pillarenv: 'base', name });
      return true;
    });
  });

  test('a secret moves only for who may read it, is sealed for its new place, and its old versions come along', async () => {
    await putMinion('m1', 'holder');
    const name = fresh();
    const target = { tgt_type: 'minion', minion_id: 'holder', master: 'm1' };
    const made = await create(name, 'moving-secret', { ...target, is_secret: true });
    const pid = pidOf(made);
    const editor = await world.as(['editor']);
    for (const [verb, body] of [
      ['move', { tgt_type: 'root' }],
      ['rename', { name: 'z' }],
    ] as const)
      assertProblem(await act(pid, verb, body, etagOfAnswer(made), editor), 403, 'forbidden');
    const both = await world.as(['editor', 'secret-reader']);
    const moved = await act(pid, 'move', { tgt_type: 'root' }, etagOfAnswer(made), both);
    assert.deepEqual([moved.status, plain(moved).value], [200, '*******'], JSON.stringify(plain(moved)));
    assert.equal(await reveal(pid), 'moving-secret');
    const next = await act(pid, 'replace', { value: 'later-secret' }, etagOfAnswer(moved));
    assertProblem(
      await act(pid, 'restore', { tick: clockOf(made) }, etagOfAnswer(next), editor),
      403,
      'forbidden',
    );
    const back = await act(pid, 'restore', { tick: clockOf(made) }, etagOfAnswer(next), both);
    assert.equal(back.status, 200, JSON.stringify(plain(back)));
    assert.equal(await reveal(pid), 'moving-secret');
    const traces = await searchFolder(world.dir, ['moving-secret', 'later-secret']);
    assert.deepEqual(traces.traces, []);
  });

  test('a minion goes to another master whole, with secrets sealed for there, or not at all', async () => {
    await sendPlain(world.admin, 'POST', '/collections', { id: 'moving', name: 'moving' });
    const minion = await putMinion('m1', 'nomad', ['moving']);
    const target = { tgt_type: 'minion', minion_id: 'nomad', master: 'm1' };
    const secret = await create('key', 'nomad-secret', { ...target, is_secret: true });
    const open = await create('motd', 'hi', target);
    const move = (client = world.admin, etag = etagOfAnswer(minion), master = 'm2') =>
      sendPlain(client, 'POST', '/masters/m1/minions/nomad/move', { master }, { 'if-match': etag });
    assertProblem(await move(await world.as(['editor'])), 403, 'forbidden');
    assertProblem(await move(world.admin, etagOfAnswer(minion), 'm9'), 422, 'unknown_master');
    assertProblem(await move(world.admin, etagOfAnswer(minion), 'm1'), 409, 'conflict');
    assertProblem(await move(world.admin, etagOfAnswer(open)), 412, 'precondition_failed');
    const busy = await putMinion('m2', 'nomad', ['moving']);
    assertProblem(await move(), 409, 'already_exists');
    await sendPlain(
      world.admin,
      'PUT',
      '/masters/m2/minions/nomad',
      { collections: [] },
      { 'if-match': etagOfAnswer(busy) },
    );
    const moved = await move();
    assert.deepEqual(
      [moved.status, plain(moved).collections],
      [200, ['moving']],
      JSON.stringify(plain(moved)),
    );
    assertProblem(await get('/masters/m1/minions/nomad'), 404, 'not_found');
    assert.equal(etagOfAnswer(await get('/masters/m2/minions/nomad')), etagOfAnswer(moved));
    assert.equal(await reveal(pidOf(secret)), 'nomad-secret');
    const now = plain(await get(`/pillars/${pidOf(open)}`));
    assert.deepEqual([now.pillarenv, now.value], ['minion_id:nomad;master:m2', 'hi']);
    const listed = plain(
      await sendPlain(world.admin, 'POST', '/pillars/list', { master: 'm2', minion_id: 'nomad' }),
    );
    assert.equal((listed.items as unknown[]).length, 2);
  });

  test('what is purged is gone with its history, by an admin only', async () => {
    const made = await create(fresh(), 'purge-me-0000001');
    const pid = pidOf(made);
    assertProblem(
      await act(pid, 'purge', undefined, etagOfAnswer(made), await world.as(['editor'])),
      403,
      'forbidden',
    );
    assertProblem(await act(pid, 'purge'), 428, 'precondition_required');
    assert.ok((await searchFolder(world.dir, ['purge-me-0000001'])).traces.length > 0);
    assert.equal((await act(pid, 'purge', undefined, etagOfAnswer(made))).status, 204);
    assert.deepEqual((await searchFolder(world.dir, ['purge-me-0000001'])).traces, []);
    for (const path of ['', '/versions', '/diff?from=1'])
      assertProblem(await get(`/pillars/${pid}${path}`), 404, 'not_found');
    assertProblem(await revive(pid, clockOf(made)), 404, 'not_found');
    assertProblem(await act(pid, 'purge'), 404, 'not_found');
    const gone = await create(fresh(), 1);
    await remove(gone);
    assert.equal((await act(pidOf(gone), 'purge')).status, 204);
  });

  test('a retention removes what the settings do not keep, on request, and says what it keeps', async () => {
    const settings = plain(await get('/history/retention', await world.as(['viewer'])));
    assert.deepEqual(settings, { keep_versions: 3, keep_days: null, run_ms: 0 });
    let pillar = await create(fresh(), 0);
    for (let i = 1; i < 6; i += 1) pillar = await put(pillar, i);
    assertProblem(
      await sendPlain(await world.as(['editor']), 'POST', '/history/retention'),
      403,
      'forbidden',
    );
    const run = plain(await sendPlain(world.admin, 'POST', '/history/retention'));
    assert.ok(Number(run.removed) >= 3 && run.finished === true, JSON.stringify(run));
    assert.deepEqual(
      (await opsOf(pidOf(pillar))).map(([, , value]) => value),
      [3, 4, 5],
    );
    assert.equal(etagOfAnswer(await get(`/pillars/${pidOf(pillar)}`)), etagOfAnswer(pillar));
    const again = plain(await sendPlain(world.admin, 'POST', '/history/retention'));
    assert.deepEqual(again, { removed: 0, finished: true });
  });

  describe('a whole scope', () => {
    const scopeOf = (id: string) => `minion_id:${id};master:m1`;
    const restore = (id: string, at: unknown, more: object = {}, etag?: string, client = world.admin) =>
      sendPlain(
        client,
        'POST',
        '/scopes/restore',
        { pillarenv: scopeOf(id), at, ...more },
        etag === undefined ? {} : { 'if-match': etag },
      );
    const on = (id: string) => ({ tgt_type: 'minion', minion_id: id, master: 'm1' });
    const valuesOf = async (id: string) => {
      const { items } = plain(
        await sendPlain(world.admin, 'POST', '/pillars/list', { master: 'm1', minion_id: id, limit: 500 }),
      );
      return Object.fromEntries(
        (items as { name: string; value: unknown }[]).map(({ name, value }) => [name, value]),
      );
    };
    /** Four pillars; then one is changed, one deleted, one renamed, one made, and the secret replaced. */
    const prepare = async (id: string) => {
      await putMinion('m1', id);
      const changed = await create('changed', 1, on(id));
      const deleted = await create('deleted', 2, on(id));
      const renamed = await create('renamed', 3, on(id));
      const secret = await create('secret', 'scope-secret-1', { ...on(id), is_secret: true });
      const at = clockOf(secret);
      const time = plain(secret).updated_at;
      await waitFor('the next millisecond', async () => Date.now() > Date.parse(String(time)));
      await put(changed, 10);
      await remove(deleted);
      await act(pidOf(renamed), 'rename', { name: 'other' }, etagOfAnswer(renamed));
      await act(pidOf(secret), 'replace', { value: 'scope-secret-2' }, etagOfAnswer(secret));
      const made = await create('made', 4, on(id));
      return { at, time, made, secret, deleted };
    };
    const then = { changed: 1, deleted: 2, renamed: 3, secret: '*******' };

    test('goes back to a clock or a time, after a preview, and back again', async () => {
      const { at, time, secret, deleted } = await prepare('s1');
      const before = await valuesOf('s1');
      const preview = await restore('s1', at, { dry_run: true });
      const shown = plain(preview) as Record<string, { name: string }[]>;
      const namesOf = (list: string) => (shown[list] ?? []).map(({ name }) => name).sort();
      assert.deepEqual(
        [namesOf('create'), namesOf('update'), namesOf('delete'), namesOf('conflicts')],
        [['deleted'], ['changed', 'renamed', 'secret'], ['made'], []],
        JSON.stringify(shown),
      );
      assert.deepEqual(await valuesOf('s1'), before);
      const done = await restore('s1', at, {}, etagOfAnswer(preview), await world.as(['editor']));
      assert.equal(done.status, 200, JSON.stringify(plain(done)));
      assert.deepEqual(await valuesOf('s1'), then);
      assert.equal(await reveal(pidOf(secret)), 'scope-secret-1');
      assert.equal(plain(await get(`/pillars/${pidOf(deleted)}`)).value, 2);
      const nothing = plain(await restore('s1', time, { dry_run: true }));
      assert.deepEqual([nothing.create, nothing.update, nothing.delete, nothing.unchanged], [[], [], [], 4]);
      const forth = await restore('s1', clockOf(preview), { dry_run: true });
      assert.equal((await restore('s1', clockOf(preview), {}, etagOfAnswer(forth))).status, 200);
      assert.deepEqual(await valuesOf('s1'), before);
    });

    test('needs its preview, and fails when anything in it changed since', async () => {
      const { at } = await prepare('s2');
      assertProblem(await restore('s2', at), 428, 'precondition_required');
      assertProblem(await restore('s2', at, {}, '*'), 428, 'precondition_required');
      assertProblem(await restore('s2', at, {}, '"other.12345678.1"'), 412, 'precondition_failed');
      const preview = await restore('s2', at, { dry_run: true });
      await create('one-more', 5, on('s2'));
      const before = await valuesOf('s2');
      assertProblem(await restore('s2', at, {}, etagOfAnswer(preview)), 412, 'precondition_failed');
      assert.deepEqual(await valuesOf('s2'), before);
      const again = await restore('s2', at, { dry_run: true });
      await create(fresh(), 'elsewhere');
      assert.equal(
        (await restore('s2', at, {}, etagOfAnswer(again))).status,
        200,
        'other scopes do not matter',
      );
      assert.deepEqual(await valuesOf('s2'), then);
      assertProblem(await restore('s2', 1e9, { dry_run: true }), 422, 'unprocessable', 'at');
      assertProblem(await restore('s2', 'yesterday', { dry_run: true }), 422, 'unprocessable');
      assertProblem(
        await restore('s2', at, { dry_run: true }, undefined, await world.as(['viewer'])),
        403,
        'forbidden',
      );
    });

    test('names what is in its way, restores nothing then, and the rest when told so', async () => {
      const { at, made, secret, deleted } = await prepare('s3');
      const now = await get(`/pillars/${pidOf(secret)}`);
      await act(pidOf(secret), 'move', { tgt_type: 'root' }, etagOfAnswer(now));
      const preview = await restore('s3', at, { dry_run: true });
      assert.deepEqual(plain(preview).conflicts, [{ pid: pidOf(secret), name: 'secret', reason: 'moved' }]);
      const before = await valuesOf('s3');
      assertProblem(await restore('s3', at, {}, etagOfAnswer(preview)), 409, 'conflict');
      assert.deepEqual(await valuesOf('s3'), before);
      const pids = [pidOf(made), pidOf(deleted)];
      const part = await restore('s3', at, { dry_run: true, pids });
      assert.equal((await restore('s3', at, { pids }, etagOfAnswer(part))).status, 200);
      assert.deepEqual(await valuesOf('s3'), { changed: 10, deleted: 2, other: 3 });
    });

    test('goes in parts above what one transaction may hold, and on where it was cut', async () => {
      await putMinion('m1', 's4');
      const [first, second, gone] = [
        await create('first', 1, on('s4')),
        await create('second', 2, on('s4')),
        await create('gone', 3, on('s4')),
      ];
      const at = clockOf(gone);
      const before = await valuesOf('s4');
      const away = await act(pidOf(second), 'rename', { name: 'third' }, etagOfAnswer(second));
      await act(pidOf(first), 'rename', { name: 'second' }, etagOfAnswer(first));
      await act(pidOf(second), 'rename', { name: 'first' }, etagOfAnswer(away));
      await act(pidOf(second), 'rename', { name: 'last' }, '*');
      await remove(gone);
      const many = LIMITS.batchPillars + 5;
      const made = Array.from({ length: many }, (_, i) => create(`many-${i}`, i, on('s4')));
      made.push(create('gone', 'another', on('s4')));
      for (const answer of await Promise.all(made)) assert.equal(answer.status, 201);

      const limit = 90;
      const counts = { create: 0, update: 0, delete: 0 };
      const etags = new Set<string>();
      let preview = await restore('s4', at, { dry_run: true, limit });
      for (;;) {
        assert.equal(preview.status, 200, JSON.stringify(plain(preview)));
        const shown = plain(preview) as Record<keyof typeof counts, unknown[]>;
        for (const what of ['create', 'update', 'delete'] as const) counts[what] += shown[what].length;
        etags.add(etagOfAnswer(preview));
        const { next_cursor: cursor } = plain(preview);
        if (cursor === null) break;
        preview = await restore('s4', at, { dry_run: true, limit, cursor });
      }
      assert.deepEqual(counts, { create: 1, update: 2, delete: many + 1 });
      assert.equal(etags.size, 1, 'all parts of a preview are of its first clock');

      const one = await restore('s4', at, { limit }, [...etags][0]);
      assert.equal((plain(one).delete as unknown[]).length, limit);
      assertProblem(await restore('s4', at, { limit }, [...etags][0]), 412, 'precondition_failed');
      await create('meanwhile', 0, on('s4'));
      const cursor = plain(one).next_cursor;
      assertProblem(
        await restore('s4', at, { limit, cursor }, etagOfAnswer(one)),
        412,
        'precondition_failed',
      );

      let part = await restore('s4', at, { dry_run: true, limit: 1 });
      for (let next: unknown; next !== null; next = plain(part).next_cursor) {
        part = await restore('s4', at, next === undefined ? {} : { cursor: next }, etagOfAnswer(part));
        assert.equal(part.status, 200, JSON.stringify(plain(part)));
      }
      assert.deepEqual(await valuesOf('s4'), before);
      assertProblem(
        await restore('s4', at, { dry_run: true, cursor: 'YzE6eA' }),
        422,
        'unprocessable',
        'cursor',
      );
    });

    test('a name that another one holds is free in time, whichever part that is in', async () => {
      await putMinion('m1', 's5');
      const made = await Promise.all([1, 2, 3, 4].map((i) => create(`n-${i}`, i, on('s5'))));
      const at = Math.max(...made.map(clockOf));
      const before = await valuesOf('s5');
      // Each gets the name of the next one.
      for (const [i, one] of [...made.entries()].reverse())
        assert.equal(
          (await act(pidOf(one), 'rename', { name: `n-${i + 2}` }, etagOfAnswer(one))).status,
          200,
        );
      let part = await restore('s5', at, { dry_run: true, limit: 1 });
      for (let next: unknown; next !== null; next = plain(part).next_cursor) {
        const more = next === undefined ? {} : { cursor: next };
        part = await restore('s5', at, { limit: 1, ...more }, etagOfAnswer(part));
        assert.equal(part.status, 200, JSON.stringify(plain(part)));
      }
      assert.deepEqual(await valuesOf('s5'), before);
    });
  });
});
