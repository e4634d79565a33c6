import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { trackedFiles } from '../../scripts/checks/tracked-files.ts';
import { tempDir } from '../support/temp.ts';

const checkout = path.join(import.meta.dirname, '..', '..');

/** A fresh checkout with the files of this one as they are now, without anything that was installed. */
async function copyCheckout(to: string): Promise<void> {
  for (const file of await trackedFiles(checkout)) {
    await mkdir(path.dirname(path.join(to, file)), { recursive: true });
    await copyFile(path.join(checkout, file), path.join(to, file));
  }
}

/** The PATH without the Node.js that this test run brought along: that one comes without npm. */
function newcomersPath(): string {
  const ours = path.dirname(process.execPath);
  const dirs = (process.env.PATH ?? '').split(path.delimiter);
  return dirs.filter((dir) => dir !== ours || existsSync(path.join(dir, 'npm'))).join(path.delimiter);
}

type Ended = { code: number | null; stdout: string; stderr: string };

async function npmStart(cwd: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn('npm', ['start', '--', '--once'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.setEncoding('utf8').toArray(),
    child.stderr.setEncoding('utf8').toArray(),
    new Promise<number | null>((resolve) => child.on('close', resolve)),
  ]);
  return { code, stdout: stdout.join(''), stderr: stderr.join('') };
}

describe("the newcomer's path", () => {
  it('leads from nothing to a merged pillar, also twice at once, and again without a network', async () => {
    await using dir = await tempDir('newcomer');
    const at = (name: string) => path.join(dir.path, name);
    await copyCheckout(at('checkout'));
    await mkdir(at('home'));
    // Nothing of this run, of the person who runs it, or of an npm above it.
    const kept = Object.entries(process.env).filter(([name]) =>
      /^(LANG|LC_|TZ|TMPDIR|.*PROXY|.*proxy|PIP_|SSL_|NODE_EXTRA_CA)/.test(name),
    );
    const env = { ...Object.fromEntries(kept), PATH: newcomersPath(), HOME: at('home') };

    const first = await Promise.all([npmStart(at('checkout'), env), npmStart(at('checkout'), env)]);
    for (const { code, stdout, stderr } of first) {
      assert.equal(code, 0, stderr);
      assert.match(stdout, /overrode/);
      assert.match(stdout, /won {2,}/);
    }
    assert.match(first.map(({ stderr }) => stderr).join(''), /packages of the workspace: done in/);

    const nowhere = 'http://127.0.0.1:9';
    const offline = {
      ...env,
      npm_config_registry: nowhere,
      PIP_INDEX_URL: nowhere,
      HTTPS_PROXY: nowhere,
      HTTP_PROXY: nowhere,
    };
    const second = await npmStart(at('checkout'), offline);
    assert.equal(second.code, 0, second.stderr);
    assert.doesNotMatch(second.stderr, /packages of the workspace/);

    const { stdout } = await promisify(execFile)('find', [at('home'), at('checkout'), '-name', '*.partial']);
    assert.equal(stdout, '', 'half an install was left');
    assert.ok(existsSync(path.join(at('home'), '.cache', 'colonnade')));
  });
});
