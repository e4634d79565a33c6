import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../test/support/temp.ts';
import { checkLengths } from './lengths.ts';
import { checkMachinePaths } from './machine-paths.ts';
import { checkReadmes } from './readmes.ts';

async function withFiles(
  contents: Readonly<Record<string, string>>,
  check: (root: string, files: string[]) => Promise<string[]>,
): Promise<string[]> {
  await using dir = await tempDir('checks');
  for (const [file, text] of Object.entries(contents)) {
    await mkdir(path.dirname(path.join(dir.path, file)), { recursive: true });
    await writeFile(path.join(dir.path, file), text);
  }
  return await check(dir.path, Object.keys(contents));
}

describe('checkLengths', () => {
  it('allows sources 300 lines and tests 600', async () => {
    const lines = (count: number) => 'x\n'.repeat(count);
    const faults = await withFiles(
      {
        'ok.ts': lines(300),
        'long.ts': lines(301),
        'open-end.mjs': `${lines(300)}x`,
        'ok.test.ts': lines(600),
        'long.test.ts': lines(601),
        'test_ok.py': lines(600),
        'long.py': lines(301),
        'any.generated.ts': lines(1000),
        'any.md': lines(1000),
      },
      checkLengths,
    );
    assert.deepEqual(faults, [
      'long.ts: 301 lines, at most 300',
      'open-end.mjs: 301 lines, at most 300',
      'long.test.ts: 601 lines, at most 600',
      'long.py: 301 lines, at most 300',
    ]);
  });
});

describe('checkReadmes', () => {
  it('asks for one in every package and service', () => {
    const files = [
      'packages/a/README.md',
      'packages/a/x.ts',
      'packages/b/src/README.md',
      'services/c/main.ts',
      'x/y.ts',
    ];
    assert.deepEqual(checkReadmes(files), ['packages/b: no README.md', 'services/c: no README.md']);
  });
});

describe('checkMachinePaths', () => {
  // Put together here, so that this file is not a fault itself.
  const home = ['', 'home', 'ann', 'colonnade'].join('/');
  const temporary = ['', 'tmp', 'x1'].join('/');

  it('finds homes and temporary folders, with file and line', async () => {
    const faults = await withFiles(
      { 'a.ts': `first\nconst x = '${home}';`, 'b.md': `see ${temporary}.` },
      checkMachinePaths,
    );
    assert.deepEqual(faults, [`a.ts:2: ${home.replace('/colonnade', '')}`, `b.md:1: ${temporary}.`]);
  });

  it('leaves system folders, relative paths, addresses and binary files alone', async () => {
    const text = `/etc/salt /srv/pillar /var/run ./tmp/x $HOME/work/x https://example.org/home/ann src/root/x`;
    const faults = await withFiles({ 'a.md': text, 'b.png': `\0${home}` }, checkMachinePaths);
    assert.deepEqual(faults, []);
  });
});
