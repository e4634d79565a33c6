import assert from 'node:assert/strict';
import { readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openRunStore } from '../src/store/run-store.ts';
import { isRunning } from './hooks-support.ts';
import { type PreparedRunner, prepareRunner } from './support.ts';

async function startProcess(prepared: PreparedRunner, name = 'runner'): Promise<ServiceProcess> {
  return await startService({
    name: 'hook-runner',
    portVariable: 'OPS_PORT',
    logFile: path.join(prepared.dir, `${name}.log`),
    env: prepared.env,
  });
}

function historyOf(prepared: PreparedRunner) {
  using store = openRunStore(path.join(prepared.dir, 'state', 'hooks.sqlite'));
  return store.history(1000);
}

function allAcknowledged(prepared: PreparedRunner) {
  return waitFor(
    'the last events to be acknowledged',
    async () => {
      const witness = await prepared.bus.witness();
      const info = await witness.request('$JS.API.CONSUMER.INFO.EVENTS.hook-runner');
      await witness.close();
      const { num_pending, num_ack_pending } = info.json<{
        num_pending: number;
        num_ack_pending: number;
      }>();
      return num_pending + num_ack_pending === 0;
    },
    { limitMs: 60_000 },
  );
}

describe('a runner that is killed', () => {
  test('runs no finished hook again, ends the one it left behind, says that nobody knows, and goes on', async () => {
    await using prepared = await prepareRunner();
    await prepared.hook('pillar-changed', '10', 'echo ten >> $OUT');
    await prepared.hook('pillar-changed', '20', 'echo "twenty $$" >> $OUT; sleep 600');
    await prepared.hook('pillar-changed', '30', 'echo thirty >> $OUT');
    await using service = await startProcess(prepared);
    await prepared.publish('pillar.updated', '/pillars/p1', { pid: 'p1' });
    const line = await waitFor('the second hook', async () =>
      (await prepared.out()).find((one) => one.startsWith('twenty')),
    );
    const pid = Number(line.split(' ')[1]);
    await service.kill('SIGKILL');
    assert.ok(await isRunning(pid), 'the hook has outlived its runner');
    await service.restart();
    await waitFor('the third hook', async () => (await prepared.out()).includes('thirty'), {
      limitMs: 30_000,
    });
    assert.deepEqual(await prepared.out(), ['ten', line, 'thirty']);
    assert.equal(await isRunning(pid), false);
    await service[Symbol.asyncDispose]();
    const [run] = await waitFor('the history', () => {
      const runs = historyOf(prepared);
      return runs[0]?.status === undefined ? undefined : runs;
    });
    assert.equal(run?.status, 'warning');
    assert.deepEqual(
      run.results.map(({ hook, status }) => `${hook} ${status}`),
      ['10 ok', '20 unknown', '30 ok'],
    );
  });

  test('at any moment, again and again: no hook runs twice for an event, none is left out in silence', async () => {
    await using prepared = await prepareRunner();
    for (const hook of ['10', '20', '30']) {
      await prepared.hook('pillar-changed', hook, `echo "$COLONNADE_EVENT_CLOCK ${hook}" >> $OUT`);
    }
    await using service = await startProcess(prepared);
    const clocks: string[] = [];
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 10; i++) {
        const subject = `/pillars/p${i % 3}`;
        clocks.push((await prepared.publish('pillar.updated', subject, { pid: 'p' })).clock);
      }
      const enough = (await prepared.out()).length + 3 + 5 * round;
      await waitFor('some hooks', async () => (await prepared.out()).length >= enough, { everyMs: 1 });
      await service.kill('SIGKILL');
      await service.restart();
    }
    const ended = () => {
      const runs = historyOf(prepared);
      const count = runs.filter(({ status }) => status !== undefined).length;
      return count === clocks.length ? runs : undefined;
    };
    await waitFor(
      'every event',
      async () => {
        const text = await (await fetch(`${service.url}/metrics`)).text();
        return (
          /hook_runner_leads\{[^}]*\} 1/u.test(text) &&
          (await prepared.out()).length >= 3 * clocks.length - 12
        );
      },
      { limitMs: 60_000 },
    );
    await service[Symbol.asyncDispose]();
    await using last = await startProcess(prepared, 'last');
    assert.ok(last.url);
    await allAcknowledged(prepared);
    await last[Symbol.asyncDispose]();
    const runs = await waitFor('the history', ended);
    const lines = await prepared.out();
    assert.equal(new Set(lines).size, lines.length, 'a hook has run twice');
    const ran = new Set(lines);
    for (const { results, status } of runs) {
      assert.equal(results.length, 3);
      const unknown = results.filter((one) => one.status === 'unknown').length;
      assert.equal(status, unknown === 0 ? 'ok' : 'warning');
    }
    const unknown = runs
      .flatMap(({ results }) => results)
      .filter(({ status }) => status === 'unknown').length;
    assert.ok(ran.size >= 3 * clocks.length - unknown, `${ran.size} ran, ${unknown} unknown`);
    // Each kill leaves at most as many behind as run at once.
    assert.ok(unknown <= 3 * 4, `${unknown} unknown`);
  });
});

describe('two runners on one folder', () => {
  test('one runs hooks, and the other takes over when it is killed', async () => {
    await using prepared = await prepareRunner();
    await prepared.hook(
      'pillar-changed',
      '10',
      `mkdir ${prepared.dir}/lock || echo overlap >> $OUT; sleep 0.02; rmdir ${prepared.dir}/lock; echo ran >> $OUT`,
    );
    prepared.env.HOOKS_CONCURRENCY = '1';
    const one = await startProcess(prepared, 'one');
    await using two = await startProcess(prepared, 'two');
    const leads = async ({ url }: ServiceProcess) =>
      /hook_runner_leads\{[^}]*\} 1/u.test(await (await fetch(`${url}/metrics`)).text());
    await waitFor('one to lead', () => leads(one));
    assert.equal(await leads(two), false);
    for (let i = 0; i < 10; i++) await prepared.publish('pillar.updated', `/pillars/${i}`, { pid: 'p' });
    await waitFor('a first hook', async () => (await prepared.out()).length > 0, { everyMs: 1 });
    await one.kill('SIGKILL');
    await waitFor('the other to lead', () => leads(two));
    await waitFor('the rest', async () => (await prepared.out()).length >= 9, { limitMs: 30_000 });
    assert.ok(!(await prepared.out()).includes('overlap'));
    await one[Symbol.asyncDispose]();
  });

  /** What somebody does to the state folder of a leader that lives. */
  const spoilt: readonly (readonly [string, (state: string) => Promise<void>])[] = [
    ['whose lock was removed', (state) => rm(path.join(state, 'leader.lock'))],
    [
      'whose store was moved away',
      (state) => rename(path.join(state, 'hooks.sqlite'), path.join(state, 'old')),
    ],
    ['whose whole folder was moved away', (state) => rename(state, `${state}.old`)],
  ];
  for (const [what, spoil] of spoilt) {
    test(`a leader ${what} steps down, and one of the two goes on`, async () => {
      await using prepared = await prepareRunner();
      await prepared.hook('pillar-changed', '10', 'echo "$COLONNADE_EVENT_SUBJECT" >> $OUT');
      await using one = await startProcess(prepared, 'one');
      await using two = await startProcess(prepared, 'two');
      const leads = async ({ url }: ServiceProcess) =>
        /hook_runner_leads\{[^}]*\} 1/u.test(await (await fetch(`${url}/metrics`)).text());
      const lost = async (name: string) =>
        (await readFile(path.join(prepared.dir, `${name}.log`), 'utf8')).includes('the lead is lost');
      await waitFor('a leader', async () => (await leads(one)) || (await leads(two)));
      const name = (await leads(one)) ? 'one' : 'two';
      await prepared.publish('pillar.updated', '/pillars/before', { pid: 'p' });
      await waitFor('its hook', async () => (await prepared.out()).includes('/pillars/before'));
      // With the store goes the memory of what has run: an event that is not acknowledged would run its hooks again.
      await allAcknowledged(prepared);
      await spoil(path.join(prepared.dir, 'state'));
      await waitFor('it to step down', () => lost(name));
      await waitFor('one leader', async () => {
        const all = await Promise.all([leads(one), leads(two)]);
        return all.filter(Boolean).length === 1;
      });
      await prepared.publish('pillar.updated', '/pillars/after', { pid: 'p' });
      await waitFor('a hook after it', async () => (await prepared.out()).includes('/pillars/after'));
      assert.deepEqual(await prepared.out(), ['/pillars/before', '/pillars/after']);
    });
  }

  test('whoever has led before can write nothing any more', async () => {
    await using prepared = await prepareRunner();
    const file = path.join(prepared.dir, 'hooks.sqlite');
    using old = openRunStore(file);
    const run = { id: 'r', event: 'pillar-changed', subject: 's' };
    const ledger = old.ledger(run);
    ledger.begun('10');
    using _now = openRunStore(file);
    assert.throws(() => ledger.begun('20'), { code: 'conflict' });
    assert.throws(() => old.end(run, { status: 'ok', fault: undefined }), { code: 'conflict' });
    assert.throws(() => old.forgetBefore(Date.now() + 1000), { code: 'conflict' });
    assert.equal(old.history(10).length, 1);
  });
});
