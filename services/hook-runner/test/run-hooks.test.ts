import assert from 'node:assert/strict';
import { readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { hookFolder, only } from './hooks-support.ts';

describe('a run of hooks', { concurrency: 4 }, () => {
  test('goes in the order of the bytes of their names, one after the other', async () => {
    await using hooks = await hookFolder();
    const names = ['a', 'B', '10', '9', 'é', 'Z', '_', '~x', '𝄞', '～'];
    for (const name of names) await hooks.add(name, `echo begin; sleep 0.01; echo end`);
    const { status, results, lines } = await hooks.run();
    const wanted = ['10', '9', 'B', 'Z', '_', 'a', '~x', 'é', '～', '𝄞'];
    assert.equal(status, 'ok');
    assert.deepEqual(
      results.map(({ hook }) => hook),
      wanted,
    );
    assert.deepEqual(
      lines,
      wanted.flatMap((name) => [`${name} stdout: begin`, `${name} stdout: end`]),
    );
  });

  for (const [code, status, ran] of [
    [0, 'ok', 2],
    [1, 'error', 1],
    [31, 'error', 1],
    [32, 'warning', 2],
    [63, 'warning', 2],
    [64, 'error', 1],
    [255, 'error', 1],
  ] as const) {
    test(`exit code ${code}: ${status}, ${ran} of two run`, async () => {
      await using hooks = await hookFolder();
      await hooks.add('10', `exit ${code}`);
      await hooks.add('20', 'exit 0');
      const run = await hooks.run();
      assert.equal(run.status, status);
      assert.equal(run.results.length, ran);
      assert.equal(run.results[0]?.code, code);
      assert.deepEqual(run.notRun, ran === 1 ? ['20'] : []);
    });
  }

  test('a signal is an error', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'kill -SEGV $$');
    const { status, results } = await hooks.run();
    assert.equal(status, 'error');
    assert.equal(results[0]?.reason, 'ended by SIGSEGV');
  });

  test('takes executables only, through links too, and says what it left out', async () => {
    await using hooks = await hookFolder();
    const file = await hooks.add('10-run', 'echo $0');
    await hooks.add('20-not-executable', 'echo no', 0o644);
    await hooks.add('30-off.Disabled', 'echo no');
    await symlink(file, path.join(hooks.path, '40-link'));
    await symlink(hooks.path, path.join(hooks.path, '50-folder-link'));
    await symlink('nowhere', path.join(hooks.path, '60-dangling'));
    const { results, ignored } = await hooks.run();
    assert.deepEqual(
      results.map(({ hook }) => hook),
      ['10-run', '40-link'],
    );
    assert.deepEqual(ignored, [
      { name: '20-not-executable', why: 'not executable' },
      { name: '30-off.Disabled', why: 'suffix' },
      { name: '50-folder-link', why: 'no regular file' },
      { name: '60-dangling', why: 'no regular file' },
    ]);
  });

  test('a folder that is not there has no hooks; one that is none cannot be listed', async () => {
    await using hooks = await hookFolder();
    assert.equal((await hooks.run({ folder: path.join(hooks.path, 'absent') })).status, 'ok');
    const file = await hooks.add('10', 'exit 0');
    const run = await hooks.run({ folder: file });
    assert.equal(run.status, 'error');
    assert.match(run.fault?.message ?? '', /cannot be listed/u);
  });

  test('hooks get their folder, an empty stdin, no arguments and a clean environment', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'pwd; cat; echo "$#"; env | grep -v ^_= | LC_ALL=C sort');
    const { lines } = await hooks.run({
      parameters: { RUDDER_NODE_ID: 'web 1', RUDDER_NODE_IPS: '' },
      ownEnv: { PATH: '/usr/bin:/bin', NATS_NKEY_SEED: 'hidden', TZ: 'UTC', HOME: '/srv' },
      allowedEnv: ['TZ'],
    });
    assert.deepEqual(
      lines.map((line) => line.replace('10 stdout: ', '')),
      [
        hooks.path,
        '0',
        'HOME=/srv',
        'LANG=C.UTF-8',
        'PATH=/usr/bin:/bin',
        `PWD=${hooks.path}`,
        'RUDDER_NODE_ID=web 1',
        'RUDDER_NODE_IPS=',
        'TZ=UTC',
      ],
    );
  });

  test('a parameter no environment can carry stops the run before the first hook', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'exit 0');
    const run = await hooks.run({ parameters: { RUDDER_X: 'a\0b' } });
    assert.deepEqual([run.status, run.results.length], ['error', 0]);
    assert.match(run.fault?.message ?? '', /RUDDER_X holds a NUL/u);
  });

  test('both streams come line by line, also without an end, with CR, and with bytes that are no text', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', String.raw`printf 'one\r\n\ntwo'; printf 'bad \377 byte\n' >&2`);
    const { lines, results } = await hooks.run();
    assert.deepEqual(
      lines.filter((line) => line.includes('stdout')),
      ['10 stdout: one', '10 stdout: ', '10 stdout: two'],
    );
    assert.deepEqual(
      lines.filter((line) => line.includes('stderr')),
      ['10 stderr: bad \ufffd byte'],
    );
    assert.equal(results[0]?.stdout, 'one\r\n\ntwo');
  });

  test('timeouts stated in the head take the place of the defaults, and bad ones are told of', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', '# HOOK_WARN_TIMEOUT = 1 ms\n# HOOK_KILL_TIMEOUT = soon\nsleep 0.2');
    const { status, slow, headFaults, results } = await hooks.run();
    assert.equal(status, 'ok');
    assert.deepEqual(slow, ['10']);
    assert.equal(results[0]?.slow, true);
    assert.deepEqual(headFaults, ['10: HOOK_KILL_TIMEOUT is not a length and a unit']);
  });

  test('what a hook leaves, the next one finds', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'echo 42 > answer');
    await hooks.add('20', 'cat answer');
    assert.deepEqual((await hooks.run()).lines, ['20 stdout: 42']);
    assert.equal(await readFile(path.join(hooks.path, 'answer'), 'utf8'), '42\n');
  });

  test('a hundred hooks', async () => {
    await using hooks = await hookFolder();
    for (let i = 0; i < 100; i++) await hooks.add(String(i).padStart(3, '0'), 'exit 0');
    assert.equal((await hooks.run()).results.length, 100);
  });

  test('one hook: its result', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'exit 0');
    const { durationMs, ...rest } = only(await hooks.run());
    assert.ok(durationMs > 0);
    assert.deepEqual(rest, {
      hook: '10',
      status: 'ok',
      reason: 'exit code 0',
      code: 0,
      signal: undefined,
      slow: false,
      stdout: '',
      stderr: '',
      droppedBytes: 0,
    });
  });
});
