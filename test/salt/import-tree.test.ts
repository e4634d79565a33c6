import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { BridgeClient } from '@colonnade/embedded';
import { parseValue, toPlain } from '@colonnade/value';
import { ensureVenv, readRequirements } from '../support/python.ts';
import { stackForTests, type TestStack } from '../support/stack.ts';
import { type TempDir, tempDir } from '../support/temp.ts';
import { runInPipe } from '../support/terminal.ts';

/** The page on moving a pillar tree, run as it stands; Salt says what its minions got before. */

const run = promisify(execFile);
const root = path.join(import.meta.dirname, '..', '..');
const MASTER = 'salt-a';
const TREE = path.join(root, 'docs', 'examples', 'pillar');

/** What Salt gives a minion from a pillar root. Later releases mask what they print. */
async function saltPillar(dir: string, tree: string, minion: string): Promise<unknown> {
  const requirements = await readRequirements(path.join(import.meta.dirname, 'requirements-3006.txt'));
  const python = await ensureVenv('salt-3006', requirements);
  await mkdir(path.join(dir, 'salt'), { recursive: true });
  const places = { root_dir: path.join(dir, 'salt'), log_level: 'error', file_client: 'local' };
  await writeFile(path.join(dir, 'salt', 'minion'), JSON.stringify(places));
  const args = ['-c', path.join(dir, 'salt'), '--local', `--pillar-root=${tree}`, `--id=${minion}`];
  const env = { ...process.env, PYTHONWARNINGS: 'ignore' };
  const program = path.join(path.dirname(python), 'salt-call');
  const { stdout } = await run(program, [...args, 'pillar.items', '--out=json'], { env });
  const { local } = toPlain(parseValue(stdout)) as { local: Record<string, unknown> };
  assert.equal(local._errors, undefined, JSON.stringify(local._errors));
  return local;
}

describe('moving a pillar tree', () => {
  let dir: TempDir;
  let world: TestStack;
  let bridge: BridgeClient;
  let env: NodeJS.ProcessEnv;
  let bundle: string;
  before(async () => {
    dir = await tempDir('tree');
    world = await stackForTests();
    bridge = world.bridge(await world.addMaster(MASTER));
    bundle = path.join(dir.path, 'colonnade.cjs');
    await run(process.execPath, [path.join(root, 'scripts', 'bundle-cli.ts'), bundle]);
    env = {
      ...{ PATH: process.env.PATH ?? '', HOME: dir.path, TERM: 'dumb' },
      COLONNADE_URL: world.stack.api.url,
      COLONNADE_TOKEN_FILE: path.join(world.stack.dir, 'secrets', 'admin-token'),
    };
  });
  after(async () => {
    await world?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  const colonnade = (...args: string[]) => runInPipe([process.execPath, bundle, ...args], { env, cwd: root });
  /** Without the marker of the bridge. */
  const merged = async (minionId: string) => {
    const reply = await bridge.ask({ minionId, pillarenv: 'auto', ttlMs: 5000 });
    assert.ok(reply.ok);
    return toPlain(reply.pillar);
  };

  test('the commands of the page give each minion what Salt gave it', async () => {
    const page = await readFile(path.join(root, 'docs', 'migrating.md'), 'utf8');
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gmsu)].map(([, text]) => text ?? '');
    const lines = blocks.flatMap((text) => text.trim().split('\n'));
    assert.ok(lines.length >= 6);
    for (const line of lines) {
      const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/gu)].map(
        (found) => found[1] ?? found[2] ?? found[3] ?? '',
      );
      assert.equal(words[0], 'colonnade');
      const ended = await colonnade(...words.slice(1));
      assert.equal(ended.code, 0, `${line}\n${ended.stdout}${ended.stderr}`);
      assert.ok(!`${ended.stdout}${ended.stderr}`.includes('battery staple'));
      if (line.includes('--dry-run')) assert.match(ended.stderr, /pillars: \d+ new/u);
    }
    for (const minion of ['web-1.example', 'web-2.example', 'db-1.example', 'db-2.example']) {
      assert.deepEqual(await merged(minion), await saltPillar(dir.path, TREE, minion), minion);
    }
    const cache = {
      cache: {
        size_mb: 2048,
        ratio: 0.75,
        hosts: ['a.example', 'b.example'],
        allowed: ['a.example', 'b.example'],
      },
    };
    const { motd, umask, ntp, ssh } = (await saltPillar(dir.path, TREE, 'cache-1.example')) as Record<
      string,
      unknown
    >;
    assert.deepEqual(await merged('cache-1.example'), {
      ...cache,
      cache_password: 'battery staple',
      motd,
      umask,
      ntp,
      ssh,
    });
    const secrets = await colonnade('pillar', 'search', '--json');
    for (const text of ['correct horse', 'battery staple', 'BEGIN EXAMPLE']) {
      assert.ok(!secrets.stdout.includes(text), text);
    }
  });

  test('what cannot be taken is named with its file and line, and nothing is sent', async () => {
    const before = await colonnade('export', '--format', 'json');
    const tree = path.join(dir.path, 'bad');
    await mkdir(tree);
    const cases: [top: string, sls: string, says: RegExp][] = [
      ["base:\n  '*': [a]\n", 'fine: 1\nx: {{ grains.id }}\n', /a\.sls:2: Jinja/u],
      [
        "base:\n  '*': [a]\n  'G@os:Debian and web*': [a]\n",
        'x: 1\n',
        /top\.sls:3: the target .*name a collection/u,
      ],
      ["base:\n  'os:Debian': [{match: grain}, a]\n", 'x: 1\n', /top\.sls:2: the target/u],
      ["base:\n  '*': [a]\n", 'x:\n  80: 1\n', /a\.sls:2: a key that is an integer/u],
      ["base:\n  '*': [a]\n", '_errors: 1\n', /reserved/u],
    ];
    for (const [top, sls, says] of cases) {
      await writeFile(path.join(tree, 'top.sls'), top);
      await writeFile(path.join(tree, 'a.sls'), sls);
      const ended = await colonnade('import', '--salt-tree', tree, '--master', MASTER, '--yes');
      assert.equal(ended.code, 7, ended.stderr);
      assert.match(ended.stderr, says);
      assert.match(ended.stderr, /nothing was sent/u);
    }
    await writeFile(path.join(tree, 'a.sls'), 'x: 1\n');
    const wrong: [args: string[], says: RegExp][] = [
      [['--salt-tree', tree], /--master/u],
      [['--salt-tree', tree, '--master', MASTER, '--secret', '*passwrd*'], /no pillar has a name like/u],
      [['--salt-tree', tree, '--master', MASTER, '--collection', 'web*'], /TARGET=ID/u],
      [['--salt-tree', path.join(tree, 'none'), '--master', MASTER], /cannot be read: ENOENT/u],
      [['--salt-tree', tree, '--minion-yaml', tree, '--master', MASTER], /give one of/u],
      [['--minion-yaml', path.join(tree, 'a.sls')], /--master/u],
      [['estate.yaml', '--secret', 'x'], /are for --salt-tree/u],
    ];
    for (const [args, says] of wrong) {
      const ended = await colonnade('import', ...args, '--yes');
      assert.equal(ended.code, 2, ended.stderr);
      assert.match(ended.stderr, says);
    }
    assert.equal((await colonnade('export', '--format', 'json')).stdout, before.stdout);
  });
});
