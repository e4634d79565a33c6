import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { lockFolder } from './lock-folder.ts';

describe('the lock of a data folder', () => {
  let dir: string;
  before(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'colonnade-lock-'));
  });
  after(() => rm(dir, { recursive: true, force: true }));

  test('keeps a second one out until the first has let go', async () => {
    const deep = path.join(dir, 'a', 'b');
    const first = await lockFolder(deep);
    await assert.rejects(lockFolder(deep), { code: 'conflict' });
    await first[Symbol.asyncDispose]();
    await (await lockFolder(deep))[Symbol.asyncDispose]();
  });

  for (const [what, text] of [
    ['a process that is gone', '999999999 x'],
    ['an earlier process with a number that is in use again', `${process.pid} another-boot/1`],
    ['nobody', ''],
    ['garbage', 'x\u0000y'],
  ] as const) {
    test(`of ${what} is taken over`, async () => {
      await writeFile(path.join(dir, 'lock'), text);
      await (await lockFolder(dir))[Symbol.asyncDispose]();
    });
  }

  test('a folder that cannot be is named, with what to do', async () => {
    const file = path.join(dir, 'file');
    await writeFile(file, '');
    for (const bad of [file, path.join(file, 'below'), '/proc/x/y']) {
      await assert.rejects(lockFolder(bad), (error: Error & { code: string }) => {
        assert.equal(error.code, 'unavailable');
        assert.match(error.message, /--data/u);
        return true;
      });
    }
  });
});
