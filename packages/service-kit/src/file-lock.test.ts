import assert from 'node:assert/strict';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { acquireFileLock, type FileLock } from './file-lock.ts';

const never = new AbortController().signal;
const acquire = async (file: string): Promise<FileLock> => {
  const lock = await acquireFileLock(file, never, () => assert.fail('it must be free'));
  assert.ok(lock !== undefined);
  return lock;
};
/** Whether somebody else would get it now. */
const isFree = async (file: string) => {
  const stop = new AbortController();
  using lock = await acquireFileLock(file, stop.signal, () => stop.abort());
  return lock !== undefined;
};

test('a lock is one holder only, until he lets go of it', async () => {
  await using dir = await tempDir('lock');
  const file = path.join(dir.path, 'lock');
  const lock = await acquire(file);
  assert.ok(lock.isHeld());
  assert.equal(await isFree(file), false);
  assert.ok(lock.isHeld(), 'that somebody has tried does not end it');
  lock[Symbol.dispose]();
  assert.equal(await isFree(file), true);
});

for (const [what, spoil] of [
  ['removed', (file: string) => rm(file)],
  ['moved away', (file: string) => rename(file, `${file}.old`)],
] as const) {
  test(`whose file was ${what} knows that he holds nothing, and others get the new one`, async () => {
    await using dir = await tempDir('lock');
    const file = path.join(dir.path, 'lock');
    using lock = await acquire(file);
    await spoil(file);
    assert.equal(lock.isHeld(), false);
    using next = await acquire(file);
    assert.ok(next.isHeld());
    assert.equal(lock.isHeld(), false, 'there is a file again, but it is another');
  });
}
