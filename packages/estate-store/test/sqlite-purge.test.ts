import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type EstateStore, type Mutation, openSqliteStore } from '@colonnade/estate-store';
import { waitFor } from '../../../test/support/wait-for.ts';

const mark = (i: number) => `<<exposed-${String(i).padStart(4, '0')}>>`;
/** Looks random and is fixed. */
const scatter = (i: number) => Math.imul((i ^ (i >>> 16)) + 1, 0x45d9f3b) >>> 8;
/** Of sizes that make SQLite move cells between pages, which leaves copies that no deletion clears. */
const textOf = (i: number, round: number) =>
  mark(i) + 'x'.repeat(scatter(i * 2 + round) % (900 + round * 1600));
const PILLARS = 600;

describe('after a purge the files hold nothing of the values', () => {
  let folder = '';
  let path = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'colonnade-purge-'));
    path = join(folder, 'estate.db');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const write = (store: EstateStore, mutations: readonly Mutation[]) =>
    store.write({ mutations, events: [], by: 'ada', atMs: 1 });
  const each = (store: EstateStore, make: (i: number) => Mutation) =>
    Promise.all(Array.from({ length: PILLARS }, (_, i) => write(store, [make(i)])));
  const traces = (text: string) =>
    readdirSync(folder).filter((file) => readFileSync(join(folder, file)).includes(text));
  const pidOf = (i: number) => `p${scatter(i)}-${i}`;
  const fill = async (store: EstateStore) => {
    const target = { tgtType: 'root', tgtId: 'root', pillarenv: 'base', isSecret: false } as const;
    await each(store, (i) => {
      const pid = pidOf(i);
      return { kind: 'pillar.create', record: { ...target, pid, name: pid, value: textOf(i, 0) } };
    });
    await each(store, (i) => ({ ...update(i), value: textOf(i, 1), isSecret: false }));
  };
  const update = (i: number) =>
    ({
      kind: 'pillar.update',
      pid: pidOf(i),
      expectTick: undefined,
      value: 'sealed',
      isSecret: true,
    }) as const;

  test('of pillars that became secrets, while the store is open and others stay as they are', async () => {
    await using store = await openSqliteStore({ path });
    await fill(store);
    assert.deepEqual(traces('<<exposed-').length > 0, true);
    const sealed = Array.from({ length: PILLARS - 1 }, (_, i) => update(i + 1));
    await write(store, sealed);
    for (let i = 1; i < PILLARS; i++) assert.deepEqual(traces(mark(i)), [], mark(i));
    assert.equal((await store.getPillar(pidOf(0)))?.value, textOf(0, 1));
  });

  test('of pillars that were deleted', async () => {
    await using store = await openSqliteStore({ path });
    await fill(store);
    await each(store, (i) => ({ kind: 'pillar.delete', pid: pidOf(i), expectTick: undefined }));
    const purges = Array.from({ length: PILLARS }, (_, i) => ({
      kind: 'pillar.purgeHistory' as const,
      pid: pidOf(i),
    }));
    await write(store, purges);
    assert.deepEqual(traces('<<exposed-'), []);
  });

  test('once a reader that stood in the way is gone, and after a restart too', async () => {
    const store = await openSqliteStore({ path, busyTimeoutMs: 50 });
    await fill(store);
    const reader = new DatabaseSync(path, { readOnly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM pillars').get();
    await each(store, update);
    assert.ok(traces('<<exposed-').length > 0, 'the reader did not stand in the way');
    await store[Symbol.asyncDispose]();
    reader.exec('COMMIT');
    reader.close();
    await using again = await openSqliteStore({ path });
    await again.ping();
    await waitFor('nothing to be left', () => traces('<<exposed-').length === 0);
  });
});
