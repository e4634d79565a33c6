import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVENTS_STREAM } from '@colonnade/contracts';
import { openSqliteReader, openSqliteStore } from '@colonnade/estate-store';
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

type Version = { name: string; version: number; kid: string; state: string; values: number; opens: boolean };
type RewrapView = {
  state: string;
  left: number;
  run: { by: string; rewrapped: number; failed: number } | null;
};

let world: ApiWorld;
before(async () => {
  world = await startWorld({
    env: { REWRAP_RUN_MS: '0' },
    kmsEnv: { KMS_KEY_PREPUBLISH_S: '1', KMS_KEY_UNDO_S: '3600' },
  });
});
after(() => world[Symbol.asyncDispose]());

const get = async (url: string) => plain(await world.admin.call('GET', url));
const post = (url: string, body?: object) => sendPlain(world.admin, 'POST', url, body);
const versions = async () =>
  ((await get('/keys')).items as Version[]).filter(({ name }) => name === 'pillars');
const rewrapView = async () => (await get('/keys/pillars/rewrap')) as RewrapView;
const secret = async (name: string, value: unknown, where: object = { tgt_type: 'root' }) => {
  const answer = await post('/pillars', { ...where, name, value, is_secret: true });
  assert.equal(answer.status, 201, JSON.stringify(plain(answer)));
  return { pid: String(plain(answer).pid), etag: etagOfAnswer(answer) };
};
const reveal = async (pid: string) => plain(await world.admin.call('POST', `/pillars/${pid}/reveal`)).value;

/** Makes the next version and waits until it seals. */
async function rotate(): Promise<string> {
  const { kid } = plain(await world.admin.call('POST', '/keys/pillars/rotate')) as { kid: string };
  return waitFor('the next version to seal', async () =>
    (await versions()).some((one) => one.kid === kid && one.state === 'active') ? kid : undefined,
  );
}

async function rewrap(): Promise<RewrapView> {
  assert.equal((await post('/keys/pillars/rewrap')).status, 202);
  return waitFor('the rewrap to end', async () => {
    const now = await rewrapView();
    return now.state === 'idle' ? now : undefined;
  });
}

/** What the store and its readers show, without what wraps values. */
async function everything(): Promise<string> {
  await using store = await openSqliteStore({ path: world.storePath });
  const all = { after: undefined, limit: 500 };
  const tgtTypes = ['root', 'collection', 'minion', 'task_tpl', 'task'] as const;
  const { rows } = await store.listPillars({ tgtTypes }, all);
  const histories = await Promise.all(rows.map(({ pid }) => store.listVersions(pid)));
  const { clock } = await store.snapshot({
    ...{ since: undefined, scopes: [], collections: false, masters: [], minions: [] },
  });
  const show = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
  return JSON.stringify({ rows, histories, clock }, show).replaceAll(
    /"(?:kid|dek_wrap_nonce_b64|dek_wrapped_b64)":"[^"]*"/gu,
    '',
  );
}

const made = new Map<string, { pid: string; etag: string }>();

test('values of every kind are counted under their key, and rewrapped without a trace', async () => {
  const { admin } = world;
  await post('/collections', { id: 'c1', name: 'c1' });
  await post('/masters', { id: 'm1' });
  await sendPlain(
    admin,
    'PUT',
    '/masters/m1/minions/web-1',
    { collections: ['c1'] },
    { 'if-none-match': '*' },
  );
  made.set('root', await secret('root', 'of root'));
  made.set(
    'collection',
    await secret('coll', 'of a collection', { tgt_type: 'collection', collection_id: 'c1' }),
  );
  const minion = { tgt_type: 'minion', master: 'm1', minion_id: 'web-1' };
  made.set('minion', await secret('minion', 'of a minion', minion));
  const old = await secret('gone', 'of a deleted one');
  await admin.call('DELETE', `/pillars/${old.pid}`, undefined, { 'if-match': old.etag });
  const twice = await secret('twice', 'before');
  const now = await sendPlain(
    admin,
    'POST',
    `/pillars/${twice.pid}/replace`,
    { value: 'after' },
    { 'if-match': twice.etag },
  );
  made.set('twice', { pid: twice.pid, etag: etagOfAnswer(now) });
  const [first] = await versions();
  // 4 pillars, 4 + 1 versions of them, 2 versions of the deleted one.
  assert.deepEqual([first?.state, first?.values], ['active', 11]);
  const kid = await rotate();
  assert.equal((await rewrapView()).left, 11);

  const before = await everything();
  const done = await rewrap();
  assert.deepEqual(
    [done.left, done.run?.rewrapped, done.run?.failed, done.run?.by],
    [0, 6, 0, 'bootstrap-admin'],
  );
  assert.deepEqual(
    (await versions()).map(({ state, values }) => [state, values]),
    [
      ['retired', 0],
      ['active', 11],
    ],
  );
  assert.equal(await everything(), before);
  for (const { pid, etag } of made.values())
    assert.equal(etagOfAnswer(await admin.call('GET', `/pillars/${pid}`)), etag);
  assert.equal(await reveal(made.get('twice')?.pid ?? ''), 'after');
  assert.equal(await reveal(made.get('minion')?.pid ?? ''), 'of a minion');
  // The history too: what was replaced comes back.
  const { items } = (await get(`/pillars/${twice.pid}/versions`)) as { items: { clock: number }[] };
  const ticks = items.map(({ clock }) => clock).sort((a, b) => a - b);
  const headers = { 'if-match': made.get('twice')?.etag ?? '' };
  await sendPlain(admin, 'POST', `/pillars/${twice.pid}/restore`, { tick: ticks[0] }, headers);
  assert.equal(await reveal(twice.pid), 'before');
  // Events come in the order of the writes: of the rewrap there would be some before that of the restore.
  const events = async () =>
    (await readStream(world.bus, EVENTS_STREAM)).filter(({ subject }) => subject.includes('.pillar.'));
  // They come in the order of the writes, so any of the rewrap would be there before this one's.
  await post('/pillars', { tgt_type: 'root', name: 'last', value: 1 });
  const created = async () => (await events()).filter(({ subject }) => subject.endsWith('.created')).length;
  await waitFor('the event of the last one', async () => (await created()) === 6);
  // Six made, one deleted, one replaced and restored.
  assert.equal((await events()).length, 9);
  const record = (await auditRecords(world.bus)).find(({ verb }) => verb === 'rewrap');
  assert.equal(record?.annotations?.['colonnade/kid'], kid);
  assert.equal(record?.annotations?.['colonnade/rewrapped'], '6');
});

test('a version is barred, destroyed and taken back, each only when nothing is lost by it', async () => {
  const ask = (what: string, version: number) => post(`/keys/pillars/${what}`, { version });
  assertProblem(await ask('destroy', 1), 409, 'conflict');
  assertProblem(await ask('min-version', 3), 404, 'not_found');
  assertProblem(await ask('destroy', 9), 404, 'not_found');
  assertProblem(await post('/keys/other/min-version', { version: 1 }), 404, 'not_found');
  assertProblem(await post('/keys/pillars/min-version', { version: 0 }), 422, 'unprocessable');
  await rotate();
  // Values stand under version 2 now.
  assertProblem(await ask('min-version', 3), 409, 'conflict');
  assert.deepEqual(
    (await versions()).map(({ opens }) => opens),
    [true, true, true],
  );
  assert.equal((await ask('min-version', 2)).status, 200);
  assert.deepEqual(
    (await versions()).map(({ opens }) => opens),
    [false, true, true],
  );
  assertProblem(await ask('destroy', 2), 409, 'conflict');
  const ended = await ask('destroy', 1);
  assert.equal(ended.status, 200, JSON.stringify(plain(ended)));
  assert.equal(plain(ended).state, 'destroyed');
  assert.match(String(plain(ended).erased_after), /^\d{4}-/u);
  assertProblem(await ask('destroy', 1), 409, 'conflict');
  assert.equal(plain(await ask('undestroy', 1)).state, 'retired');
  assertProblem(await ask('undestroy', 1), 409, 'conflict');
  assert.equal((await ask('min-version', 1)).status, 200);
  assert.deepEqual(
    (await versions()).map(({ opens }) => opens),
    [true, true, true],
  );
  assert.equal((await rewrap()).left, 0);
  assert.equal(await reveal(made.get('root')?.pid ?? ''), 'of root');
  const verbs = (await auditRecords(world.bus)).map(({ objectRef }) => objectRef?.subresource);
  for (const what of ['min-version', 'destroy', 'undestroy']) assert.ok(verbs.includes(what), what);
});

test('what does not open in its place is counted and left, and the rest is done', async () => {
  const { pid } = await secret('broken', 'x');
  await rotate();
  {
    await using store = await openSqliteStore({ path: world.storePath });
    const value = (await store.getPillar(pid))?.value as { $enc: object };
    const spoilt = { $enc: { ...value.$enc, dek_wrapped_b64: 'A'.repeat(64) } };
    assert.equal(await store.swapSealed([{ pid, from: value as never, to: spoilt as never }]), 1);
  }
  const done = await rewrap();
  assert.deepEqual([done.left, done.run?.failed], [2, 2]);
  const purged = await sendPlain(world.admin, 'POST', `/pillars/${pid}/purge`, undefined, {
    'if-match': '*',
  });
  assert.ok(purged.status < 300);
});

test('a run that was killed goes on in another process, to the end', async () => {
  // More than one step takes.
  for (let i = 0; i < 130; i += 1) await secret(`many-${i}`, i);
  await rotate();
  const { left } = await rewrapView();
  assert.ok(left >= 260);
  const slow = await world.startApi({ REWRAP_PER_SECOND: '100', REWRAP_RUN_MS: '500' });
  await world.api.kill('SIGKILL');
  await using reader = await openSqliteReader({ path: world.storePath });
  await waitFor('a part to be rewrapped', async () => {
    const { scopes } = await reader.snapshot({
      ...{ since: undefined, scopes: ['base'], collections: false, masters: [], minions: [] },
    });
    const kids = (scopes.get('base') ?? []).map(
      ({ value }) => (value as { $enc?: { kid: string } }).$enc?.kid,
    );
    return new Set(kids.filter((kid) => kid !== undefined)).size > 1 ? true : undefined;
  });
  await slow.kill('SIGKILL');
  await using _next = await world.startApi({ REWRAP_RUN_MS: '500' });
  await using store = await openSqliteStore({ path: world.storePath });
  const use = await waitFor(
    'nothing to be left',
    async () => {
      const counts = await store.countKeyUse();
      return [...counts.values()].filter((n) => n > 2).length === 1 ? counts : undefined;
    },
    { limitMs: 60_000 },
  );
  assert.ok([...use.values()].some((n) => n >= 260));
});
