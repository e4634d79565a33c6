import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, sendPlain, startWorld } from './support.ts';

describe('an API token that the store does not take', () => {
  let world: ApiWorld;

  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  const folder = () => path.join(world.dir, 'kms', 'readers');
  const readers = async () => new Set(await readdir(folder()));
  const make = () => sendPlain(world.admin, 'POST', '/tokens', { sub: 'ann', roles: ['admin'] });
  /** Nobody writes meanwhile. */
  const withStoreLocked = async (work: () => Promise<void>) => {
    const db = new DatabaseSync(world.storePath);
    db.exec('BEGIN IMMEDIATE');
    try {
      await work();
    } finally {
      db.exec('ROLLBACK');
      db.close();
    }
  };

  test('is no reader of crypto-kms either', async () => {
    const before = await readers();
    await withStoreLocked(async () => assertProblem(await make(), 503, 'unavailable'));
    assert.deepEqual(await readers(), before);
    assert.equal((await make()).status, 201);
    assert.equal((await readers()).size, before.size + 1);
  });

  test('ends by itself within a minute when pillar-api dies in between, so it never counts as an admin that is left', async () => {
    const before = await readers();
    const added = async () => [...(await readers())].find((name) => !before.has(name));
    await withStoreLocked(async () => {
      const answer = make().catch(() => undefined);
      await waitFor('the reader', async () => (await added()) !== undefined);
      await world.api.kill('SIGKILL');
      await answer;
    });
    const file = await readFile(path.join(folder(), (await added()) ?? ''), 'utf8');
    const { expires_at_ms } = JSON.parse(file) as { expires_at_ms: number | null };
    assert.ok(expires_at_ms !== null && expires_at_ms <= Date.now() + 60_000, String(expires_at_ms));
    await world.api.restart();
  });

  test('one that is made has the end it was given, in crypto-kms too', async () => {
    const before = await readers();
    const answer = await sendPlain(world.admin, 'POST', '/tokens', {
      sub: 'bea',
      roles: ['admin'],
      expires_in_s: 3600,
    });
    assert.equal(answer.status, 201);
    assert.equal((await make()).status, 201);
    const added = [...(await readers())].filter((name) => !before.has(name));
    const ends = await Promise.all(
      added.map(async (name) => JSON.parse(await readFile(path.join(folder(), name), 'utf8')).expires_at_ms),
    );
    const [never, hour] = ends.toSorted((a, b) => Number(a ?? 0) - Number(b ?? 0));
    assert.equal(never, null);
    assert.ok(Number(hour) > Date.now() + 3_500_000);
  });
});
