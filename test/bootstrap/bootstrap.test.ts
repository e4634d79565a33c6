import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { trackedFiles } from '../../scripts/checks/tracked-files.ts';
import { tempDir } from '../support/temp.ts';

const checkout = path.join(import.meta.dirname, '..', '..');

/** Nobody listens here: what still works needs no network. */
const nowhere = 'http://127.0.0.1:9';
const offline = { npm_config_registry: nowhere, npm_config_fetch_retries: '0', PIP_INDEX_URL: nowhere };

/** A fresh checkout with the files of this one as they are now, without anything that was installed. */
async function copyCheckout(to: string): Promise<void> {
  for (const file of await trackedFiles(checkout)) {
    await mkdir(path.dirname(path.join(to, file)), { recursive: true });
    await copyFile(path.join(checkout, file), path.join(to, file));
  }
}

/** Nothing of this run, nor of the npm above it; the PATH without the Node.js we brought along, which has no npm. */
function newcomersEnv(): NodeJS.ProcessEnv {
  const kept = /^(LANG|TZ|TMPDIR|PIP_|SSL_|NODE_EXTRA_CA|https?_proxy$|no_proxy$)/i;
  const ours = path.dirname(process.execPath);
  const dirs = (process.env.PATH ?? '').split(path.delimiter);
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => kept.test(name))),
    PATH: dirs.filter((dir) => dir !== ours || existsSync(path.join(dir, 'npm'))).join(path.delimiter),
  };
}

type Ended = { code: number | null; stdout: string; stderr: string };

async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<Ended> {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.setEncoding('utf8').toArray(),
    child.stderr.setEncoding('utf8').toArray(),
    new Promise<number | null>((resolve) => child.on('close', resolve)),
  ]);
  return { code, stdout: stdout.join(''), stderr: stderr.join('') };
}

describe('the bootstrap', () => {
  it('keeps everything in the checkout when the home cannot be written, and starts again without a network', async () => {
    await using dir = await tempDir('bootstrap');
    await copyCheckout(dir.path);
    // A folder below a file: not even root can make it.
    const env = { ...newcomersEnv(), HOME: path.join(dir.path, 'package.json', 'home') };
    const start = (more: NodeJS.ProcessEnv) =>
      run('npm', ['start', '--', '--help'], dir.path, { ...env, ...more });

    const first = await start({});
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /--once/);
    assert.match(first.stderr, /packages of the workspace: done in [\d.]+ s/);
    const cache = await readdir(path.join(dir.path, '.colonnade', 'cache'));
    assert.ok(cache.some((name) => name.startsWith('pnpm-')));
    assert.deepEqual(
      cache.filter((name) => /partial|lock/.test(name)),
      [],
    );

    const second = await start(offline);
    assert.equal(second.code, 0, second.stderr);
    assert.equal(second.stderr, '', 'a second start has nothing to prepare');
  });

  it('says what failed, where and what to do, and counts a test run that could not begin', async () => {
    await using dir = await tempDir('bootstrap');
    await copyCheckout(dir.path);
    const env = {
      ...newcomersEnv(),
      ...offline,
      HOME: dir.path,
      COLONNADE_CACHE: path.join(dir.path, 'cache'),
    };
    const { code, stdout, stderr } = await run('npm', ['test', '--silent'], dir.path, env);
    assert.equal(code, 1);
    assert.match(stderr, /colonnade: ".*install .*" ended with exit code \d+\n {2}where: .*cache.*\n {2}\| /);
    assert.match(stderr, /ECONNREFUSED/);
    assert.match(stderr, / {2}to do: .*network/);
    assert.equal(stdout, '0 passed, 1 failed\n');
  });

  it('refuses what it does not know, and a cache it cannot write', async () => {
    await using dir = await tempDir('bootstrap');
    await writeFile(path.join(dir.path, 'file'), '');
    const script = path.join(checkout, 'scripts', 'run.mjs');
    const unknown = await run(process.execPath, [script, 'begin'], dir.path, process.env);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /no command "begin"\n {2}to do: Use one of: start, test, verify/);
    const env = { ...process.env, COLONNADE_CACHE: path.join(dir.path, 'file', 'cache') };
    const unwritable = await run(process.execPath, [script, 'verify'], dir.path, env);
    assert.equal(unwritable.code, 1);
    assert.match(unwritable.stderr, /cache cannot be written\n {2}where: .*file/);
  });
});
