import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { tempDir } from '../../test/support/temp.ts';
import { withLock } from './lock.mjs';

describe('withLock', () => {
  it('lets one in at a time and leaves nothing behind', async () => {
    await using dir = await tempDir('lock');
    const file = path.join(dir.path, 'some.lock');
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await setImmediate();
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(file, work)));
    assert.equal(most, 1);
    assert.deepEqual(await readdir(dir.path), []);
  });

  it('takes over the lock of a process that is gone', async () => {
    await using dir = await tempDir('lock');
    const file = path.join(dir.path, 'some.lock');
    const { pid } = spawnSync(process.execPath, ['--version']);
    await writeFile(file, `${pid} ${hostname()} abc`);
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await setImmediate();
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(file, work)));
    assert.equal(most, 1);
    assert.deepEqual(await readdir(dir.path), []);
  });

  it('gives the lock back when the work fails', async () => {
    await using dir = await tempDir('lock');
    const file = path.join(dir.path, 'some.lock');
    const failing = withLock(file, async () => {
      assert.ok(existsSync(file));
      throw new Error('the work failed');
    });
    await assert.rejects(failing, /the work failed/);
    assert.equal(await withLock(file, async () => 1), 1);
  });
});
