import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../test/support/temp.ts';
import { installOnce, resolveCache } from './cache.mjs';

describe('resolveCache', () => {
  it('takes the folder asked for, else one of the user, else one in the checkout', async () => {
    await using dir = await tempDir('cache');
    const at = (...parts: string[]) => path.join(dir.path, ...parts);
    // A file where a folder should be is the one thing that root cannot write into either.
    await writeFile(at('file'), '');
    assert.equal(resolveCache(at('checkout'), { COLONNADE_CACHE: at('asked') }), at('asked'));
    assert.equal(resolveCache(at('checkout'), { XDG_CACHE_HOME: at('xdg') }), at('xdg', 'colonnade'));
    assert.equal(
      resolveCache(at('checkout-2'), { XDG_CACHE_HOME: '/proc/none' }),
      at('checkout-2', '.colonnade', 'cache'),
    );
    assert.equal(
      resolveCache(at('checkout'), { XDG_CACHE_HOME: at('file') }),
      at('checkout', '.colonnade', 'cache'),
    );
  });

  it('says so when the folder asked for cannot be written', async () => {
    await using dir = await tempDir('cache');
    await writeFile(path.join(dir.path, 'file'), '');
    const asked = path.join(dir.path, 'file', 'cache');
    assert.throws(() => resolveCache(dir.path, { COLONNADE_CACHE: asked }), /cache cannot be written/);
  });
});

describe('installOnce', () => {
  it('shows a folder only when it is complete, and clears away what a killed run left', async () => {
    await using dir = await tempDir('cache');
    const target = path.join(dir.path, 'tool-1');
    await mkdir(`${target}.left.partial`);
    await mkdir(path.join(dir.path, 'tool-2.other.partial'));
    const failing = installOnce(target, async (partial) => {
      await writeFile(path.join(partial, 'half'), '');
      throw new Error('no network');
    });
    await assert.rejects(failing, /no network/);
    assert.ok(!existsSync(target));
    await installOnce(target, async (partial) => {
      await writeFile(path.join(partial, 'whole'), '');
      assert.ok(!existsSync(target));
    });
    assert.deepEqual(await readdir(target), ['whole']);
    assert.deepEqual((await readdir(dir.path)).sort(), ['tool-1', 'tool-2.other.partial']);
    await installOnce(target, () => assert.fail('it is there already'));
  });
});
