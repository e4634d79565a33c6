import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { chmod, copyFile, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { RunLedger } from '../src/run/run-hooks.ts';
import { type HookFolder, hookFolder, isRunning, only } from './hooks-support.ts';

const short = { warnMs: 50, killMs: 300 };
const fixture = path.join(import.meta.dirname, 'fixtures', 'run-folder.ts');

async function pidIn(hooks: HookFolder, name: string): Promise<number> {
  return await waitFor(name, async () => Number(await readFile(path.join(hooks.path, name), 'utf8')));
}

describe('a hook that', { concurrency: 4 }, () => {
  test('hangs is warned of, then killed, and stops the run', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'echo begun; sleep 600');
    await hooks.add('20', 'exit 0');
    const run = await hooks.run({ timeouts: short });
    assert.equal(run.status, 'error');
    assert.deepEqual(run.slow, ['10']);
    assert.deepEqual(run.notRun, ['20']);
    const { status, reason, signal, stdout } = only(run);
    assert.deepEqual([status, reason, signal], ['killed', 'killed after 300 ms', 'SIGTERM']);
    assert.equal(stdout, 'begun\n');
  });

  test('ignores TERM is ended by KILL, and so are its children', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', `trap '' TERM; sleep 600 & echo $! > child; while :; do sleep 600; done`);
    const { status, signal } = only(await hooks.run({ timeouts: short }));
    assert.deepEqual([status, signal], ['killed', 'SIGKILL']);
    const child = await pidIn(hooks, 'child');
    await waitFor('the child to be gone', async () => !(await isRunning(child)));
  });

  test('cannot be noted as running is ended, and what it has started', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'sleep 600');
    let pid = 0;
    const ledger: RunLedger = {
      ...{ known: () => undefined, begun() {}, ended() {} },
      started(_, started) {
        pid = started;
        throw new Error('disk I/O error');
      },
    };
    const { status, fault } = await hooks.run({}, { ledger });
    assert.deepEqual([status, fault?.code], ['error', 'internal']);
    assert.ok(pid > 0 && !(await isRunning(pid)));
  });

  test('ends at TERM, but not its child: the group is ended by KILL after the grace', async () => {
    await using hooks = await hookFolder();
    await hooks.add(
      '10',
      `(trap '' TERM; echo ready > ready; while :; do sleep 600; done) & echo $! > child; wait`,
    );
    const run = hooks.run({ timeouts: { warnMs: 50, killMs: 500 } });
    const child = await pidIn(hooks, 'child');
    assert.equal(only(await run).signal, 'SIGTERM');
    await waitFor('the child to be gone', async () => !(await isRunning(child)));
  });

  test('cleans up at TERM gets the time for it', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', `trap 'sleep 0.2; echo cleaned; exit 7' TERM; sleep 600 & wait`);
    const { status, code, stdout } = only(await hooks.run({ timeouts: short, graceMs: 20_000 }));
    assert.deepEqual([status, code, stdout], ['killed', 7, 'cleaned\n']);
  });

  test('forks and exits holds nobody up, although its child keeps the pipes', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'echo before; sleep 600 & echo $! > child; exit 33');
    await hooks.add('20', 'echo after');
    const run = await hooks.run();
    assert.deepEqual(
      run.results.map(({ status, stdout }) => [status, stdout]),
      [
        ['warning', 'before\n'],
        ['ok', 'after\n'],
      ],
    );
    // What a hook leaves behind on purpose stays.
    const child = await pidIn(hooks, 'child');
    assert.ok(await isRunning(child));
    process.kill(child, 'SIGKILL');
  });

  test('leaves a child that floods the pipes holds nobody up', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'yes & echo $! > child; exit 0');
    assert.equal(only(await hooks.run({ captureBytes: 1024 })).status, 'ok');
    const child = await pidIn(hooks, 'child');
    await waitFor('the child to be gone, as nobody reads', async () => !(await isRunning(child)));
  });

  test('floods both streams is read to its end; what is kept has a limit', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'head -c 3000000 /dev/zero | tr "\\0" x; head -c 2000000 /dev/zero >&2; exit 5');
    const run = await hooks.run({ captureBytes: 10_000 });
    const { code, stdout, stderr, droppedBytes } = only(run);
    assert.deepEqual([code, stdout.length, stderr.length], [5, 10_000, 10_000]);
    assert.equal(droppedBytes, 5_000_000 - 20_000);
    assert.ok(run.lines.every((line) => line.length <= 8192 + '10 stdout: '.length));
  });

  test('writes its last words and exits at once is heard', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'head -c 60000 /dev/zero | tr "\\0" x');
    assert.equal(only(await hooks.run()).stdout.length, 60_000);
  });

  test('reads stdin finds its end', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'if read line; then exit 1; fi; exit 0');
    assert.equal(only(await hooks.run()).status, 'ok');
  });

  test('deletes itself has run all the same', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'rm -- "$0"; exit 34');
    assert.deepEqual([only(await hooks.run()).code, (await hooks.run()).results.length], [34, 0]);
  });

  test('deletes, disables or replaces the next one decides what that one is', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'rm 20; exit 0');
    await hooks.add('20', 'exit 0');
    const gone = await hooks.run();
    assert.match(gone.results[1]?.reason ?? '', /^could not be started: the file.*not there \(ENOENT\)$/u);
    await hooks.add('10', 'chmod 644 20; exit 0');
    await hooks.add('20', 'exit 0');
    const disabled = await hooks.run();
    assert.equal(disabled.status, 'error');
    assert.match(disabled.results[1]?.reason ?? '', /^could not be started: .*\(EACCES\)$/u);
  });

  test('has an interpreter that is not there or not one is an error', async () => {
    await using hooks = await hookFolder();
    const bad = async (text: string) => {
      await writeFile(await hooks.add('10', ''), text);
      return only(await hooks.run());
    };
    assert.match((await bad('#!/no/such/sh\nexit 0\n')).reason, /interpreter.*\(ENOENT\)$/u);
    assert.match((await bad('#!/\nexit 0\n')).reason, /\(EACCES\)$/u);
    assert.match((await bad('#!/bin/sh\r\nexit 0\r\n')).reason, /\(ENOENT\)$/u);
    assert.equal((await bad('\x7fELF\0\0\0')).status, 'error');
    assert.equal((await bad('#!/bin/false')).code, 1);
  });

  test('names no interpreter is run by the shell, as execvp does', async () => {
    await using hooks = await hookFolder();
    await writeFile(await hooks.add('10', ''), 'exit 37\n');
    assert.equal(only(await hooks.run()).code, 37);
    await writeFile(await hooks.add('10', ''), '');
    assert.equal(only(await hooks.run()).code, 0);
  });

  test('is being written could not be started', async () => {
    await using hooks = await hookFolder();
    const file = path.join(hooks.path, '10');
    await copyFile('/bin/true', file);
    await chmod(file, 0o755);
    const writer = execFile('sh', ['-c', `exec 3>>"$1"; echo; exec sleep 600`, 'sh', file]);
    try {
      await waitFor(
        'the writer',
        () => new Promise((resolve) => writer.stdout?.once('data', () => resolve(true))),
      );
      assert.match(only(await hooks.run()).reason, /being written \(ETXTBSY\)$/u);
    } finally {
      writer.kill('SIGKILL');
    }
  });

  test('is a link in a circle, a folder, a pipe or a socket is no hook', async () => {
    await using hooks = await hookFolder();
    await symlink('20', path.join(hooks.path, '10'));
    await symlink('10', path.join(hooks.path, '20'));
    execFileSync('mkdir', [path.join(hooks.path, '30')]);
    execFileSync('sh', ['-c', 'mkfifo -m 755 "$1"', 'sh', path.join(hooks.path, '40')]);
    const { status, results, ignored } = await hooks.run();
    assert.deepEqual([status, results.length], ['ok', 0]);
    assert.deepEqual(
      ignored.map(({ name, why }) => `${name} ${why}`),
      ['10', '20', '30', '40'].map((name) => `${name} no regular file`),
    );
  });

  const names = [
    '10 with blanks',
    '20\nwith a newline',
    '-n',
    '30\'quoted"',
    '40 $(exit 9)',
    '50*',
    '\t',
    '…',
  ];
  for (const name of names) {
    test(`is called ${JSON.stringify(name)} runs like any other`, async () => {
      await using hooks = await hookFolder();
      await hooks.add(name, 'echo "$0"; exit 35');
      const { hook, code, stdout } = only(await hooks.run());
      assert.deepEqual([hook, code, stdout], [name, 35, `${hooks.path}/${name}\n`]);
    });
  }

  test('has a name that is no UTF-8 is an error, not left out', async () => {
    await using hooks = await hookFolder();
    const file = Buffer.concat([Buffer.from(`${hooks.path}/`), Buffer.from([0xff, 0x31])]);
    await writeFile(file, '#!/bin/sh\nexit 0\n');
    await chmod(file, 0o755);
    const { status, reason } = only(await hooks.run());
    assert.deepEqual([status, reason], ['error', 'could not be started: its name is not UTF-8']);
  });

  test('kills its own group ends by that signal', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'kill -TERM 0; sleep 600');
    assert.equal(only(await hooks.run()).reason, 'ended by SIGTERM');
  });

  test('gets more than an environment takes could not be started', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'exit 0');
    const parameters = Object.fromEntries(
      Array.from({ length: 64 }, (_, i) => [`X${i}`, 'x'.repeat(130_000)]),
    );
    assert.match(only(await hooks.run({ parameters })).reason, /environment is too large \(E2BIG\)$/u);
  });

  test('runs when the runner is stopped is ended, and nobody says what it has done', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'echo $$ > pid; sleep 600');
    await hooks.add('20', 'exit 0');
    const stop = new AbortController();
    const run = hooks.run({}, { signal: stop.signal });
    const pid = await pidIn(hooks, 'pid');
    stop.abort();
    const { status, results, notRun } = await run;
    assert.deepEqual([status, results[0]?.status, notRun], ['error', 'unknown', ['20']]);
    await waitFor('the hook to be gone', async () => !(await isRunning(pid)));
  });
});

describe('as somebody who is not root', {
  skip: process.getuid?.() !== 0 && 'needs root, to be another',
}, () => {
  const run = async (hooks: HookFolder) => {
    await chmod(path.dirname(hooks.path), 0o755);
    const { stdout } = await promisify(execFile)(process.execPath, [fixture, hooks.path, '65534']);
    return JSON.parse(stdout) as {
      status: string;
      fault?: string;
      results: { code?: number; reason: string }[];
    };
  };

  test('a program that may be run and not read is run; a script is an error', async () => {
    await using hooks = await hookFolder();
    await copyFile('/bin/true', path.join(hooks.path, '10'));
    await chmod(path.join(hooks.path, '10'), 0o711);
    await hooks.add('20', 'exit 0', 0o711);
    const { status, results } = await run(hooks);
    assert.deepEqual([status, results[0]?.code, results.length], ['error', 0, 2]);
    assert.notEqual(results[1]?.code, 0);
  });

  test('what only others may run is left out', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'exit 1', 0o700);
    assert.deepEqual(await run(hooks), { status: 'ok', results: [], notRun: [] });
  });

  test('a folder that may not be read is an error, not an empty one', async () => {
    await using hooks = await hookFolder();
    await hooks.add('10', 'exit 0');
    await chmod(hooks.path, 0o711);
    assert.equal((await stat(hooks.path)).mode & 0o777, 0o711);
    const { status, fault } = await run(hooks);
    assert.equal(status, 'error');
    assert.match(fault ?? '', /cannot be listed/u);
  });
});
