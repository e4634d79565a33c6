import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, plain, sendPlain, startWorld } from './support.ts';

const ENDS = ['', '-wal', '-shm'];

describe('when the store cannot be used, requests are 503, nothing is lost, and it goes on by itself', () => {
  let world: ApiWorld;
  let dir: Awaited<ReturnType<typeof tempDir>>;
  let folder: string;
  let isMounted = false;
  const acked = new Map<string, string>();

  before(async () => {
    dir = await tempDir('outage');
    folder = path.join(dir.path, 'store');
    await mkdir(folder);
    try {
      execFileSync('/bin/mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder], { stdio: 'ignore' });
      isMounted = true;
    } catch {}
    world = await startWorld({ env: { STORE_PATH: path.join(folder, 'estate.sqlite') } });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    if (isMounted) execFileSync('/bin/umount', [folder]);
    await dir[Symbol.asyncDispose]();
  });

  const create = async (name: string, value: string) => {
    const answer = await sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value });
    if (answer.status === 201) acked.set(String(plain(answer).pid), value);
    return answer;
  };
  const ready = async () => (await fetch(new URL('/readyz', world.api.url))).status;
  const assertNothingLost = async () => {
    for (const [pid, value] of acked)
      assert.equal(plain(await world.admin.send('GET', `/pillars/${pid}`)).value, value);
  };

  test('its file is away, and comes back', async () => {
    assert.equal((await create('before', 'x')).status, 201);
    const [here, aside] = [path.join(folder, 'estate.sqlite'), path.join(folder, 'aside.sqlite')];
    for (const end of ENDS) await rename(here + end, aside + end);
    assertProblem(await create('meanwhile', 'x'), 503, 'unavailable');
    const read = await world.admin.send('GET', '/masters');
    assertProblem(read, 503, 'unavailable');
    assert.ok(read.headers.get('retry-after'));
    assert.deepEqual([await ready(), (await fetch(new URL('/healthz', world.api.url))).status], [503, 200]);
    for (const end of ENDS) await rename(aside + end, here + end);
    await waitFor('readiness', async () => (await ready()) === 200);
    assert.equal((await create('after', 'x')).status, 201);
    await assertNothingLost();
  });

  test('its disk is full, and there is room again', async (t) => {
    if (!isMounted) return t.skip('needs the right to mount');
    const ballast = path.join(folder, 'ballast');
    await writeFile(ballast, Buffer.alloc(1_000_000));
    let refused = await create('big-0', 'y'.repeat(100_000));
    for (let i = 1; refused.status === 201 && i < 100; i += 1)
      refused = await create(`big-${i}`, 'y'.repeat(100_000));
    assertProblem(refused, 503, 'unavailable');
    assert.ok(acked.size > 3, `${acked.size} were written before it was full`);
    await assertNothingLost();
    await rm(ballast);
    await waitFor('a write', async () => (await create('room-again', 'z')).status === 201);
    await waitFor('readiness', async () => (await ready()) === 200);
    await assertNothingLost();
    await world.api.kill('SIGKILL');
    await world.api.restart();
    await assertNothingLost();
  });
});
