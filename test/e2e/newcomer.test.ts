import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseValue, type Value } from '@colonnade/value';
import { type TempDir, tempDir } from '../support/temp.ts';

const run = promisify(execFile);
const checkout = fileURLToPath(new URL('../../', import.meta.url));
const LIMIT_MS = 10 * 60 * 1000;

/** Where a newcomer's programs are: the PATH without what our own bootstrap put in front of it. */
function plainPath(): string {
  const ours = path.dirname(process.execPath);
  const cache = process.env.COLONNADE_CACHE ?? ours;
  const entries = (process.env.PATH ?? '').split(path.delimiter);
  return entries.filter((entry) => entry !== ours && !entry.startsWith(cache)).join(path.delimiter);
}

describe('a newcomer', () => {
  let folder: TempDir;
  let clone: string;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    folder = await tempDir('newcomer');
    clone = path.join(folder.path, 'colonnade');
    const home = path.join(folder.path, 'home');
    await mkdir(home);
    await run('git', ['clone', '--quiet', '--no-local', checkout, clone]);
    const { COLONNADE_CACHE: _, XDG_CACHE_HOME: __, npm_config_cache: ___, ...rest } = process.env;
    env = { ...rest, HOME: home, PATH: plainPath() };
  });
  after(async () => folder[Symbol.asyncDispose]());

  const start = (...args: string[]) =>
    run('npm', ['start', '--silent', '--', ...args], {
      cwd: clone,
      env,
      timeout: LIMIT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });

  test('gets a merged pillar from a fresh clone with an empty home and empty caches', async () => {
    const { stdout, stderr } = await start('--once', '--json');
    const document = parseValue(stdout) as { pillar: Record<string, Value>; explanation: { keys: Value[] } };
    assert.deepEqual(
      document.pillar.shop_db,
      Object.assign(Object.create(null), {
        user: 'shop',
        password: 'sample-shop-db-password',
        port: 5432n,
      }),
    );
    assert.ok(document.explanation.keys.length >= 7);
    assert.match(stderr, /crypto-kms on http/u, 'progress is shown');
  });

  test('the second start installs nothing, and shows the pillar to a person', async () => {
    const { stdout, stderr } = await start('--once');
    assert.doesNotMatch(stderr, /install/iu);
    assert.match(stdout, /won +minion +minion_id:shop-1\.example;master:salt-east/u);
    assert.match(stdout, /overrode +collection +collection:web;user:/u);
  });

  test('an unknown option is named, with the usage and exit code 2', async () => {
    await assert.rejects(start('--nonsense'), (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 2);
      assert.match(error.stderr, /--nonsense/u);
      assert.match(error.stderr, /Examples/u);
      return true;
    });
  });
});
