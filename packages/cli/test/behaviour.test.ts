import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { stackForTests, type TestStack, writeEstate } from '../../../test/support/stack.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { bundledCli, type Cli, environmentOf, privateFile } from './support.ts';

const root = { tgt_type: 'root' };

/** A way to a port on which connections can be broken off. */
async function startCut(port: number) {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {}).on('close', () => sockets.delete(one) && other.destroy());
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as net.AddressInfo).port,
    close,
    async [Symbol.asyncDispose]() {
      close();
      server.close();
    },
  };
}

describe('what every command promises', () => {
  const owned = new AsyncDisposableStack();
  let stack: TestStack;
  let cli: Cli;
  before(async () => {
    stack = owned.use(await stackForTests());
    cli = owned.use(await bundledCli(environmentOf(stack)));
  });
  after(() => owned.disposeAsync());

  test('exit codes tell what kind of failure it was', async () => {
    const viewer = await cli.pipe(['token', 'create', 'vic', '--role', 'viewer', '--save', 'vic', '--json']);
    assert.equal(viewer.code, 0, viewer.stderr);
    const asViewer = { COLONNADE_TOKEN_FILE: path.join(cli.dir, 'vic', 'token') };
    await writeEstate(stack.api).pillar(root, 'there', 1n);
    const cases: [number, string[], Record<string, string>?][] = [
      [2, ['pillar', 'get']],
      [2, ['pillar', 'list', '--nonsense']],
      [2, ['pillar', 'create', 's', '--root', '--secret', '--value', '"x"']],
      [2, ['pillar', 'delete', 'there', '--root']],
      [3, ['pillar', 'get', 'nobody', '--root']],
      [3, ['collection', 'get', 'nowhere']],
      [4, ['pillar', 'set', 'there', '--root', '--value', '2'], asViewer],
      [4, ['pillar', 'list'], { COLONNADE_TOKEN_FILE: '', COLONNADE_TOKEN: 'col_00_wrong' }],
      [5, ['pillar', 'create', 'there', '--root', '--value', '1']],
      [5, ['pillar', 'set', 'there', '--root', '--value', '2', '--if-match', '"x.y.1"']],
      [6, ['pillar', 'list'], { COLONNADE_URL: 'http://127.0.0.1:9' }],
      [6, ['status'], { COLONNADE_NATS_URL: 'nats://127.0.0.1:9' }],
      [7, ['pillar', 'create', 'x', '--root', '--value', '1e999']],
      [7, ['pillar', 'create', 'a:b', '--root', '--value', '{"x":', '--as', 'json']],
    ];
    for (const [code, args, env = {}] of cases) {
      const ended = await cli.pipe(args, { env });
      assert.equal(ended.code, code, `${args.join(' ')}: ${ended.stderr}`);
      assert.equal(ended.stdout, '');
      assert.match(ended.stderr, /^colonnade: .+\n[\s\S]* {2}to do: .+/u);
    }
  });

  test('what is missing is named as it was given, and help says what is required', async () => {
    const target = ['--root', '--to-minion', 'web-1'];
    const moved = await cli.pipe(['pillar', 'move', 'there', ...target]);
    assert.match(moved.stderr, /--to-minion needs --to-master/u);
    const nowhere = await cli.pipe(['pillar', 'move', 'there', '--root']);
    assert.match(nowhere.stderr, /--to-root, --to-collection ID, or --to-minion ID with --to-master ID/u);
    const gone = await cli.pipe(['history', 'gone', '--root']);
    assert.match(gone.stderr, /one that was deleted is named by its pid/u);
    for (const command of [['diff'], ['pillar', 'restore']]) {
      const { stdout } = await cli.pipe([...command, '--help']);
      assert.match(stdout, /\(required\)/u, command.join(' '));
    }
    const list = await privateFile(cli.dir, 'list.yaml', '[1]\n');
    const sent = await cli.pipe(['inventory', 'send', 'salt', 'web-1', '--file', list]);
    assert.equal(sent.code, 2, sent.stderr);
    const needs = await cli.pipe(['status'], { env: { COLONNADE_NATS_URL: '' } });
    assert.match(needs.stderr, /\.colonnade\/data\/cli\.env/u);
  });

  test('with --json an error is the problem document of the API', async () => {
    const { stdout, stderr } = await cli.pipe(['pillar', 'get', 'nobody', '--json']);
    assert.equal(stdout, '');
    const { code, status } = JSON.parse(stderr) as Record<string, unknown>;
    assert.deepEqual({ code, status }, { code: 'not_found', status: 404 });
  });

  test('data cannot steer the terminal, and a pipe gets a secret to the byte', async () => {
    const text = 'a\u001b]0;owned\u0007\u009b2J\u202eb\n';
    await writeEstate(stack.api).pillar(root, 'hostile', text);
    await writeEstate(stack.api).pillar(root, 'hostile_secret', text, true);
    const hostile = /\u0007|\u009b|\u001b\]|\u202e/u;
    for (const args of [
      ['pillar', 'list', '--root'],
      ['pillar', 'get', 'hostile', '--root'],
      ['pillar', 'reveal', 'hostile_secret', '--root'],
    ]) {
      assert.doesNotMatch((await cli.terminal(args)).output, hostile, args.join(' '));
    }
    assert.equal((await cli.pipe(['pillar', 'reveal', 'hostile_secret', '--root'])).stdout, text);
    const narrow = await cli.terminal(['pillar', 'list', '--root'], { columns: 90 });
    for (const line of narrow.output.split('\n'))
      assert.ok(line.replaceAll(/\u001b\[\d+m/gu, '').length <= 90, line);
  });

  test('NO_COLOR takes the bold away', async () => {
    assert.match((await cli.terminal(['collection', 'list'])).output, /\u001b\[1m/u);
    assert.doesNotMatch(
      (await cli.terminal(['collection', 'list'], { env: { NO_COLOR: '1' } })).output,
      /\u001b/u,
    );
  });

  test('a profile that others may read is not read, and its token goes nowhere else', async () => {
    const home = path.join(cli.dir, 'profiles');
    const env = { XDG_CONFIG_HOME: home, COLONNADE_URL: '', COLONNADE_TOKEN_FILE: '' };
    const token = await readFile(path.join(stack.stack.dir, 'secrets', 'admin-token'), 'utf8');
    const login = await cli.pipe(['login', '--url', stack.stack.api.url], { env, stdin: token });
    assert.equal(login.code, 0, login.stderr);
    assert.equal((await cli.pipe(['collection', 'list'], { env })).code, 0);
    const elsewhere = await cli.pipe(['collection', 'list', '--url', 'http://127.0.0.1:9'], { env });
    assert.equal(elsewhere.code, 2);
    assert.match(elsewhere.stderr, /is not sent to/u);
    const file = path.join(home, 'colonnade', 'profiles.json');
    await chmod(file, 0o640);
    const open = await cli.pipe(['collection', 'list'], { env });
    assert.equal(open.code, 2);
    assert.match(open.stderr, /mode 0640[\s\S]*chmod 600/u);
    const wrong = await cli.pipe(['login', '--url', stack.stack.api.url, '--profile', 'x'], {
      env: { ...env, XDG_CONFIG_HOME: path.join(cli.dir, 'other') },
      stdin: 'col_00_wrong',
    });
    assert.equal(wrong.code, 4);
    assert.deepEqual(await readdir(cli.dir).then((all) => all.filter((one) => one === 'other')), []);
  });

  test('an edit that comes too late overwrites nothing, shows the other and keeps the text', async () => {
    const { pid } = await writeEstate(stack.api).pillar(root, 'edited', 'before');
    const other = await privateFile(cli.dir, 'other.sh', '');
    await writeFile(
      other,
      `"${process.execPath}" "$1" pillar set edited --root --value '"theirs"' >/dev/null\nsed -i s/before/mine/ "$2"\n`,
    );
    const env = { EDITOR: `sh ${other} ${path.join(cli.dir, 'colonnade.cjs')}`, TMPDIR: cli.dir };
    const ended = await cli.terminal(['pillar', 'edit', pid], { env });
    assert.equal(ended.code, 5, ended.output);
    assert.match(ended.output, /-before[\s\S]*\+theirs/u);
    const [, kept = ''] = /your text is kept in (\S+)/u.exec(ended.output) ?? [];
    assert.equal(await readFile(kept, 'utf8'), 'mine\n');
    assert.match((await cli.pipe(['pillar', 'get', pid, '--value-only'])).stdout, /"theirs"/u);
  });

  test('Ctrl-C ends with 130, at a prompt and while following the log', async () => {
    const prompt = await cli.terminal(['pillar', 'delete', 'there', '--root'], {
      types: [{ expect: 'Type "yes"', send: '\u0003' }],
    });
    assert.equal(prompt.code, 130, prompt.output);
    const tail = await cli.terminal(['audit', 'tail', '--lines', '1'], {
      types: [{ expect: 'Response|Request', send: '\u0003' }],
    });
    assert.equal(tail.code, 130, tail.output);
  });

  test('a reader that goes away ends the command without a word', async () => {
    const bundle = path.join(cli.dir, 'colonnade.cjs');
    for (const [args, code] of [
      ['completion bash --json', /^(?:0|141)\n$/u],
      // The reader is gone before the second line.
      ['changes --since 0', /^141\n$/u],
    ] as const) {
      await writeEstate(stack.api).pillar(root, `gone_${args.length}`, 1n);
      const line = `"${process.execPath}" "${bundle}" ${args} | true; echo "\${PIPESTATUS[0]}"`;
      const { stdout, stderr } = await promisify(execFile)('bash', ['-c', line], { env: cli.env });
      assert.match(stdout, code);
      assert.equal(stderr, '');
    }
  });

  test('changes goes on where it was when the connection breaks, and ends when asked to', async () => {
    const write = writeEstate(stack.api);
    const api = new URL(stack.stack.api.url);
    await using cut = await startCut(Number(api.port));
    const bundle = path.join(cli.dir, 'colonnade.cjs');
    const env = { ...cli.env, COLONNADE_URL: `http://127.0.0.1:${cut.port}` };
    const child = spawn(process.execPath, [bundle, 'changes', '--json'], { env });
    const seen: { event: string; clock?: number; changed?: string[] }[] = [];
    let said = '';
    let text = '';
    child.stdout.on('data', (part) => {
      const lines = `${text}${part}`.split('\n');
      text = lines.pop() ?? '';
      seen.push(...lines.map((line) => JSON.parse(line)));
    });
    child.stderr.on('data', (part) => {
      said += String(part);
    });
    await waitFor('the beginning', () => seen.some(({ event }) => event === 'ready'), { limitMs: 30_000 });
    await write.pillar(root, 'seen_before', 1n);
    await waitFor('the first', () => seen.some(({ changed }) => changed?.includes('scope:base')));
    cut.close();
    await write.collection('meanwhile');
    await waitFor('the second', () => seen.some(({ changed }) => changed?.includes('collections')), {
      limitMs: 30_000,
    });
    assert.match(said, /broke off; going on after \S+\.\d+\n/u);
    assert.ok(!JSON.stringify(seen).includes('reset'));
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [130, null]);
    const typed = await cli.terminal(['changes', '--since', '0'], {
      types: [{ expect: 'CLOCK +KIND[\\s\\S]*scope|all ', send: '\u0003' }],
    });
    assert.equal(typed.code, 130, typed.output);
    assert.equal((await cli.pipe(['changes', '--since', 'noon', '--once'])).code, 2);
    assert.equal((await cli.pipe(['changes'], { env: { COLONNADE_URL: 'http://127.0.0.1:9' } })).code, 6);
  });

  test('tail goes on over a rotation, and loses nothing', async () => {
    const dir = path.join(cli.dir, 'log');
    await mkdir(dir);
    const log = path.join(dir, 'audit.log');
    const event = (id: string) =>
      `${JSON.stringify({ kind: 'Event', apiVersion: 'audit.k8s.io/v1', level: 'Metadata', auditID: id, stage: 'ResponseComplete', verb: 'get', stageTimestamp: '2026-01-31T12:00:00.000000Z' })}\n`;
    await writeFile(log, event('e1') + event('e2'));
    const bundle = path.join(cli.dir, 'colonnade.cjs');
    const child = spawn(process.execPath, [bundle, 'audit', 'tail', '--log', log, '--lines', '1'], {
      env: cli.env,
    });
    let seen = '';
    child.stdout.on('data', (part) => {
      seen += String(part);
    });
    await waitFor('the last line', () => seen.includes('e2'), { limitMs: 30_000 });
    await writeFile(log, event('e3'), { flag: 'a' });
    await rename(log, path.join(dir, 'audit-2026-01-31T12-00-00.000.log'));
    await writeFile(log, event('e4'));
    await waitFor('the line after the rotation', () => seen.includes('e4'), { limitMs: 30_000 });
    child.kill('SIGINT');
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 130);
    assert.deepEqual(seen.match(/e\d$/gmu), ['e2', 'e3', 'e4']);
  });
});
