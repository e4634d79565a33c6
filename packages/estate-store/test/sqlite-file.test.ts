import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import {
  type EstateReader,
  type EstateStore,
  openSqliteReader,
  openSqliteStore,
} from '@colonnade/estate-store';
import { MIGRATIONS, SCHEMA_VERSION } from '../src/sqlite/schema.ts';

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

function create(store: EstateStore, pid: string, value = 'x') {
  const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
  const record = { ...target, pid, name: pid, value, isSecret: false };
  return store.write({ mutations: [{ kind: 'pillar.create', record }], events: [], by: 'ada', atMs: 1 });
}

const look = (reader: EstateReader, scopes: string[] = []) =>
  reader.snapshot({ since: undefined, scopes, collections: false, masters: [], minions: [] });

async function assertRefused(
  promise: Promise<unknown>,
  code: ErrorCode,
  message: RegExp,
): Promise<ColonnadeError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ColonnadeError, String(thrown));
  assert.equal(thrown.code, code);
  assert.match(thrown.message, message);
  return thrown;
}

/** A file system of 1 MB with ballast on it, where the rights suffice for one. */
function mountSmallDisk(at: string) {
  const ballast = join(at, 'ballast');
  let isMounted = false;
  try {
    execFileSync('/bin/mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', at], { stdio: 'ignore' });
    isMounted = true;
    writeFileSync(ballast, Buffer.alloc(400_000));
  } catch {}
  return {
    isMounted,
    makeRoom: () => rmSync(ballast, { force: true }),
    [Symbol.dispose]: () => {
      if (isMounted) execFileSync('/bin/umount', [at]);
    },
  };
}

describe('the estate file', () => {
  let folder = '';
  let path = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'colonnade-estate-'));
    path = join(folder, 'data', 'estate.db');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('only its owner may read it, its folder and its journals', async () => {
    await using store = await openSqliteStore({ path });
    await create(store, 'p1');
    assert.equal(modeOf(join(folder, 'data')), '700');
    const files = readdirSync(join(folder, 'data')).sort();
    assert.deepEqual(files, ['estate.db', 'estate.db-shm', 'estate.db-wal']);
    for (const file of files) assert.equal(modeOf(join(folder, 'data', file)), '600', file);
  });

  test('a file that is open to others is closed to them', async () => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(path, '', { mode: 0o644 });
    await using _store = await openSqliteStore({ path });
    assert.equal(modeOf(path), '600');
  });

  test('it is a WAL with full synchronisation, and holds no second table of ours by mistake', async () => {
    await using _store = await openSqliteStore({ path });
    const db = new DatabaseSync(path, { readOnly: true });
    assert.deepEqual({ ...db.prepare('PRAGMA journal_mode').get() }, { journal_mode: 'wal' });
    assert.deepEqual(db.prepare('PRAGMA foreign_key_check').all(), []);
    assert.deepEqual(
      { ...db.prepare('SELECT schema_version, tick FROM meta').get() },
      { schema_version: SCHEMA_VERSION, tick: 0 },
    );
    db.close();
  });

  test('a file of an earlier schema is brought on with everything in it', async () => {
    mkdirSync(join(path, '..'), { recursive: true });
    const old = new DatabaseSync(path);
    for (const sql of MIGRATIONS.slice(0, 2)) old.exec(sql);
    old.exec(`
      INSERT INTO meta (id, schema_version, incarnation, tick, changes_floor) VALUES (1, 2, 'life', 7, 0);
      INSERT INTO pillars VALUES ('p1', 'minion', 'é:a', 'n', 'minion_id:é:a;master:m1', '1', 0, 'ada', 'bob', 1, 2, 7);
      INSERT INTO pillar_versions VALUES
        ('p1', 5, 'create', 'minion', 'é:a', 'n', 'minion_id:é:a;master:m1', 'null', 0, 'ada', 'ada', 1, 1, 1),
        ('p1', 7, 'update', 'minion', 'é:a', 'n', 'minion_id:é:a;master:m1', '1', 0, 'ada', 'bob', 1, 2, 0);
    `);
    old.close();
    await using store = await openSqliteStore({ path });
    const pillar = await store.getPillar('p1');
    assert.deepEqual([pillar?.value, pillar?.createdBy, pillar?.tick], [1n, 'ada', 7]);
    const { createdBy, updatedBy, createdAtMs, updatedAtMs, tick, value, ...rest } = pillar ?? assert.fail();
    const first = { ...rest, createdBy, createdAtMs, updatedBy: 'ada', updatedAtMs: 1, tick: 5, value: null };
    assert.deepEqual(await store.listVersions('p1'), [
      { ...first, op: 'create', purged: true },
      { ...pillar, op: 'update', purged: false },
    ]);
    const page = { after: undefined, limit: 5 };
    const ofMaster = async (master: string) =>
      (await store.listPillars({ tgtTypes: ['minion'], master }, page)).rows.length;
    assert.deepEqual([await ofMaster('m1'), await ofMaster('1')], [1, 0]);
  });

  test('many that open a new file at once all find it migrated, with one clock', async () => {
    const stores = await Promise.all(Array.from({ length: 6 }, () => openSqliteStore({ path })));
    const clocks = await Promise.all(stores.map(async (store) => (await look(store)).clock));
    assert.equal(new Set(clocks.map(({ incarnation }) => incarnation)).size, 1);
    await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  });

  test('a newer schema is refused by writer and reader, and left as it is', async () => {
    await (await openSqliteStore({ path }))[Symbol.asyncDispose]();
    const db = new DatabaseSync(path);
    db.exec('UPDATE meta SET schema_version = 99');
    db.close();
    const reader = await openSqliteReader({ path });
    await assertRefused(
      openSqliteStore({ path }),
      'misconfigured',
      new RegExp(`schema 99, this program knows up to ${SCHEMA_VERSION}`, 'u'),
    );
    await assertRefused(openSqliteStore({ path, newIncarnation: true }), 'misconfigured', /schema 99/u);
    await assertRefused(look(reader), 'misconfigured', /schema 99/u);
    await reader[Symbol.asyncDispose]();
  });

  test('a reader that is open while the file gets a newer schema stops reading it', async () => {
    await using _store = await openSqliteStore({ path });
    await using reader = await openSqliteReader({ path });
    await reader.ping();
    const db = new DatabaseSync(path);
    db.exec('UPDATE meta SET schema_version = 99');
    db.close();
    await assertRefused(reader.ping(), 'misconfigured', /schema 99/u);
  });

  test('what changed is forgotten after the ticks it is kept for, and idempotent answers when they expire', async () => {
    await using store = await openSqliteStore({ path, changeTicksKept: 5 });
    for (let i = 0; i < 20; i++) await create(store, `p${i}`);
    const idempotency = { scope: 's', fingerprint: 'f', response: null, expiresAtMs: Date.now() - 1 };
    const event = { type: 't', subject: 's', data: null };
    await store.write({ mutations: [], events: [event], by: 'ada', atMs: 1, idempotency });
    await create(store, 'last');
    const db = new DatabaseSync(path, { readOnly: true });
    const counts = db
      .prepare('SELECT (SELECT count(*) FROM changes) c, (SELECT count(*) FROM idempotency) i')
      .get();
    assert.deepEqual({ ...counts }, { c: 4, i: 0 });
    db.close();
  });

  test('a database of something else is refused', async () => {
    mkdirSync(join(folder, 'data'));
    const db = new DatabaseSync(path);
    db.exec('CREATE TABLE pillars (x); CREATE TABLE other (y)');
    db.close();
    await assertRefused(openSqliteStore({ path }), 'misconfigured', /not an estate/u);
  });

  test('what is no database, or lies where no file can be, is unavailable with its cause', async () => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(path, 'not a database, but long enough to be looked at as one'.repeat(100));
    const corrupt = await assertRefused(openSqliteStore({ path }), 'unavailable', /not a database/u);
    assert.ok(corrupt.cause instanceof Error);
    await using reader = await openSqliteReader({ path });
    await assertRefused(look(reader), 'unavailable', /not a database/u);
    await assertRefused(openSqliteStore({ path: join(path, 'below', 'a-file') }), 'unavailable', /ENOTDIR/u);
    await assertRefused(openSqliteStore({ path: folder }), 'unavailable', /cannot be opened/u);
  });

  test('a page that was damaged makes reads unavailable, not wrong', async () => {
    const store = await openSqliteStore({ path });
    for (let i = 0; i < 50; i++) await create(store, `p${i}`, 'x'.repeat(3000));
    await store[Symbol.asyncDispose]();
    execFileSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=4096', 'seek=2', 'count=100', 'conv=notrunc'], {
      stdio: 'ignore',
    });
    await using reader = await openSqliteReader({ path });
    await assertRefused(look(reader, ['base']), 'unavailable', /corrupt/u);
  });

  test('writes beyond the size allowed are unavailable, whole, and the writer goes on', async () => {
    await using store = await openSqliteStore({ path, maxBytes: 400_000 });
    await create(store, 'small');
    const full = await assertRefused(
      create(store, 'big', 'x'.repeat(1_000_000)),
      'unavailable',
      /disk .* is full/u,
    );
    assert.ok(full.cause instanceof Error);
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const pids = ['waits', 'a', 'big', 'b'];
    const writes = pids.map((pid) => create(store, pid, pid === 'big' ? 'x'.repeat(1_000_000) : 'x'));
    await look(store);
    other.exec('ROLLBACK');
    other.close();
    const outcomes = (await Promise.allSettled(writes)).map(({ status }) => status);
    assert.deepEqual(outcomes, ['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    const seen = await look(store, ['base']);
    assert.deepEqual(
      seen.scopes.get('base')?.map(({ pid }) => pid),
      ['a', 'b', 'small', 'waits'],
    );
    assert.equal(seen.clock.tick, 4);
  });

  test('a full disk refuses writes whole, and takes them again when there is room', async (t) => {
    mkdirSync(join(folder, 'data'));
    using disk = mountSmallDisk(join(folder, 'data'));
    t.diagnostic(disk.isMounted ? 'on a small tmpfs' : 'no right to mount: with a limit of the file instead');
    const options = disk.isMounted ? { path } : { path, maxBytes: 400_000 };
    const acked: string[] = [];
    {
      await using store = await openSqliteStore(options);
      const write = async (pid: string) => {
        await create(store, pid, 'x'.repeat(30_000));
        acked.push(pid);
      };
      const filling = async () => {
        for (let i = 0; i < 1000; i++) await write(`p${String(i).padStart(4, '0')}`);
      };
      await assertRefused(filling(), 'unavailable', /full/u);
      assert.ok(acked.length > 2);
      await assertRefused(write('q'), 'unavailable', /full/u);
      assert.equal((await look(store)).clock.tick, acked.length);
      disk.makeRoom();
      if (disk.isMounted) await write('r');
    }
    await using reopened = await openSqliteStore({ path });
    const seen = await look(reopened, ['base']);
    assert.deepEqual(
      seen.scopes.get('base')?.map(({ pid }) => pid),
      acked,
    );
    assert.equal(seen.clock.tick, acked.length);
  });

  test('the writer is started anew when its thread ends, and nothing acknowledged is lost', async () => {
    const workers: Worker[] = [];
    const onWorker = (worker: Worker) => workers.push(worker);
    process.on('worker', onWorker);
    await using store = await openSqliteStore({ path });
    process.off('worker', onWorker);
    const outcomes = Array.from({ length: 200 }, (_, i) => create(store, `p${i}`));
    const settled = Promise.allSettled(outcomes);
    await outcomes[0];
    await workers[0]?.terminate();
    for (const outcome of await settled) {
      if (outcome.status === 'rejected') assert.equal((outcome.reason as ColonnadeError).code, 'unavailable');
    }
    const [a, b] = await Promise.all([create(store, 'a'), create(store, 'b')]);
    assert.equal(b.clock.tick, a.clock.tick + 1);
    const acked = (await settled).flatMap(({ status }, i) => (status === 'fulfilled' ? [`p${i}`] : []));
    const there = new Set((await look(store, ['base'])).scopes.get('base')?.map(({ pid }) => pid));
    assert.deepEqual(
      [...acked, 'a', 'b'].filter((pid) => !there.has(pid)),
      [],
    );
  });

  test('a lock that another process keeps makes writes unavailable, reads go on, and writes come back', async () => {
    await using store = await openSqliteStore({ path, busyTimeoutMs: 50 });
    await create(store, 'p1');
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    await assertRefused(create(store, 'p2'), 'unavailable', /locked/u);
    assert.equal((await look(store)).clock.tick, 1);
    other.exec('ROLLBACK');
    other.close();
    assert.equal((await create(store, 'p2')).clock.tick, 2);
  });

  test('jobs that wait for one lock wait together', async () => {
    await using store = await openSqliteStore({ path, busyTimeoutMs: 300 });
    await create(store, 'p0');
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const startedMs = performance.now();
    const writes = Array.from({ length: 20 }, (_, i) => create(store, `q${i}`));
    await Promise.all(writes.map((write) => assertRefused(write, 'unavailable', /locked/u)));
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < 20 * 300 * 0.5, `it took ${tookMs} ms`);
    other.exec('ROLLBACK');
    other.close();
    assert.equal((await create(store, 'p1')).clock.tick, 2);
  });

  test('a reader keeps its moment while the writer goes on, and holds none afterwards', async () => {
    await using store = await openSqliteStore({ path });
    await create(store, 'p1');
    const other = new DatabaseSync(path, { readOnly: true });
    other.exec('BEGIN');
    assert.deepEqual({ ...other.prepare('SELECT tick FROM meta').get() }, { tick: 1 });
    for (let i = 2; i <= 20; i++) await create(store, `p${i}`);
    assert.deepEqual({ ...other.prepare('SELECT tick FROM meta').get() }, { tick: 1 });
    assert.equal((await look(store)).clock.tick, 20);
    other.exec('COMMIT');
    await using reader = await openSqliteReader({ path });
    await look(reader, ['base']);
    const checkpoint = new DatabaseSync(path);
    assert.equal(
      checkpoint.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy,
      0,
      'no reader pins the WAL',
    );
    checkpoint.close();
    other.close();
  });

  test('a file that was removed or replaced is noticed: not written to, and read anew', async () => {
    await using store = await openSqliteStore({ path });
    await using reader = await openSqliteReader({ path });
    await create(store, 'p1');
    await look(reader);
    const aside = join(folder, 'aside.db');
    renameSync(path, aside);
    await assertRefused(create(store, 'p2'), 'unavailable', /does not exist/u);
    await assertRefused(look(reader), 'unavailable', /does not exist/u);
    rmSync(`${path}-wal`);
    rmSync(`${path}-shm`);
    await using fresh = await openSqliteStore({ path });
    await create(fresh, 'of the new file');
    await assertRefused(create(store, 'p2'), 'unavailable', /replaced/u);
    assert.deepEqual(
      (await look(reader, ['base'])).scopes.get('base')?.map(({ pid }) => pid),
      ['of the new file'],
    );
  });

  test('an older copy put in place without a new incarnation is refused by whoever saw the newer one', async () => {
    const backup = join(folder, 'backup.db');
    await using reader = await openSqliteReader({ path });
    const store = await openSqliteStore({ path });
    await create(store, 'p1');
    await store[Symbol.asyncDispose]();
    copyFileSync(path, backup);
    const again = await openSqliteStore({ path });
    await create(again, 'p2');
    await look(reader);
    await again[Symbol.asyncDispose]();
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    copyFileSync(backup, path);
    await assertRefused(look(reader), 'unavailable', /clock .* went back/u);
    await using _restored = await openSqliteStore({ path, newIncarnation: true });
    assert.deepEqual(
      (await look(reader, ['base'])).scopes.get('base')?.map(({ pid }) => pid),
      ['p1'],
    );
  });
});
