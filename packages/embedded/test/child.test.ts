import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { skipWithout } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { startChild } from '../src/servers/index.ts';

const skip = await skipWithout('nats', 'redis');
const fixture = path.join(import.meta.dirname, 'fixtures', 'hold-servers.ts');

/** Its first letter: R, S, T for stopped, Z for a zombie; empty for none. */
async function stateOf(pid: number): Promise<string> {
  const { stdout } = spawn('ps', ['-o', 'stat=', '-p', String(pid)]);
  return (await stdout.setEncoding('utf8').toArray()).join('').trim().slice(0, 1);
}

/** A zombie is dead: it only waits for whoever collects it. */
async function isAlive(pid: number): Promise<boolean> {
  return !['', 'Z'].includes(await stateOf(pid));
}

describe('child processes end with their parent', { skip, concurrency: 4 }, () => {
  for (const ending of ['exit', 'throw', 'SIGTERM', 'SIGKILL'] as const) {
    it(`when it ends by ${ending}`, async () => {
      await using dir = await tempDir('orphans');
      const parent = spawn(process.execPath, [fixture, dir.path, ending], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const [line] = await once(parent.stdout, 'data');
      const pids: number[] = JSON.parse(String(line));
      assert.equal(pids.length, 3);
      if (ending.startsWith('SIG')) {
        for (const pid of pids) assert.ok(await isAlive(pid));
        parent.kill(ending as NodeJS.Signals);
      }
      for (const pid of pids) {
        await waitFor(`process ${pid} to end`, async () => !(await isAlive(pid)), { limitMs: 15_000 });
      }
    });
  }
});

describe('startChild', () => {
  const run = async (dir: string, script: string) =>
    await startChild({ command: '/bin/sh', args: ['-c', script], logFile: path.join(dir, 'log') });

  it('reports exit code, signal and output as they are', async () => {
    await using dir = await tempDir('child');
    const failing = await run(dir.path, 'echo out; echo err >&2; exit 7');
    assert.deepEqual(await failing.exited, { code: 7, signal: null });
    assert.equal(await readFile(path.join(dir.path, 'log'), 'utf8'), 'out\nerr\n');
    const killed = await run(dir.path, 'kill -KILL $$');
    assert.deepEqual(await killed.exited, { code: null, signal: 'SIGKILL' });
    assert.deepEqual(killed.exit, { code: null, signal: 'SIGKILL' });
  });

  it('is the process itself, in a group of its own', async () => {
    await using dir = await tempDir('child');
    await using child = await run(dir.path, 'echo $$; sleep 60');
    const text = await waitFor('its output', () => readFile(path.join(dir.path, 'log'), 'utf8'));
    assert.equal(Number(text), child.pid);
    assert.doesNotThrow(() => process.kill(-child.pid, 0));
  });

  it('stops one that ignores SIGTERM, and one that is stopped', async () => {
    await using dir = await tempDir('child');
    const deaf = await run(dir.path, 'trap "" TERM; echo deaf; while :; do sleep 0.1; done');
    await waitFor('the trap', () => readFile(path.join(dir.path, 'log'), 'utf8'));
    assert.deepEqual(await deaf.stop(100), { code: null, signal: 'SIGKILL' });
    const stopped = await run(dir.path, 'exec sleep 60');
    stopped.signal('SIGSTOP');
    await waitFor('it to be stopped', async () => (await stateOf(stopped.pid)) === 'T');
    assert.deepEqual(await stopped.stop(), { code: null, signal: 'SIGTERM' });
  });

  it('has an end when the program does not exist', async () => {
    await using dir = await tempDir('child');
    const missing = await startChild({ command: '/nowhere', args: [], logFile: path.join(dir.path, 'log') });
    assert.equal((await missing.exited).code, 127);
  });
});
