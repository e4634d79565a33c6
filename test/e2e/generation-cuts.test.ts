import assert from 'node:assert/strict';
import { access, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { bridgeRefreshKey } from '@colonnade/contracts';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { Redis } from 'ioredis';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const MASTER = 'east';
const MINIONS = ['web-1', 'db-1'];
/** One more, which a hook refuses where a generation is to fail. */
const REFUSED = 'refused-1';
const LONG = { limitMs: 60_000, everyMs: 50 };

/** The steps of a generation at which something of ours runs: between any two of them lies what it does itself. */
const STEPS = [
  'policy-generation-pre-start',
  'policy-generation-started',
  'policy-generation-node-ready',
  'policy-generation-node-finished',
  'policy-generation-finished',
  'policy-generation-failed',
] as const;
const VICTIMS = ['leader', 'mergers', 'nats'] as const;

describe('a generation cut at each step', () => {
  const owned = new AsyncDisposableStack();
  let world: TestStack;
  let estate: ReturnType<typeof writeEstate>;
  let runners: ServiceProcess[];
  let redis: Redis;
  let pid: string;
  let watching: { faults: string[]; stop(): Promise<void> };
  /** What the pillar has been, and is to be. */
  const values: string[] = [];

  before(async () => {
    const env = { GENERATION_DEBOUNCE_MS: '20', HOOKS_GRACE_MS: '50' };
    world = owned.use(await stackForTests({ mergers: 2, env }));
    estate = writeEstate(world.api);
    const { stack } = world;
    const second = await startService({
      name: 'hook-runner',
      portVariable: 'OPS_PORT',
      logFile: path.join(stack.dir, 'logs', 'hook-runner-2.log'),
      env: {
        ...env,
        ...{ NATS_URL: stack.nats.url, NATS_NKEY_SEED_FILE: stack.secrets.busNkeyFiles['hook-runner'] },
        ...{ HOOKS_DIR: stack.hooksDir, HOOKS_STATE_DIR: path.join(stack.dir, 'hooks') },
        ...{ OPS_HOST: '127.0.0.1', OPS_PORT: '0' },
      },
    });
    runners = [stack.hooks, owned.use(second)];
    const { host, port, adminUser: username, adminPassword: password } = stack.redis;
    redis = new Redis({ host, port, username, password, protocol: 2, disableClientInfo: true });
    owned.defer(() => redis.disconnect());
    await world.addMaster(MASTER);
    for (const minion of [...MINIONS, REFUSED]) await estate.minion(MASTER, minion, []);
    values.push('value 0');
    ({ pid } = await estate.pillar({ tgt_type: 'root' }, 'motd', 'value 0'));
    await inForce('value 0');
    watching = watch();
  });
  after(async () => {
    await watching?.stop();
    await owned.disposeAsync();
  });

  const rules = (minion: string, folder = 'rules') =>
    path.join(world.stack.dir, 'hooks', 'share', MASTER, minion, folder);
  const motdOf = async (minion: string): Promise<string | undefined> => {
    const text = await readFile(path.join(rules(minion), 'pillar.json'), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { motd?: string }).motd;
  };
  const inForce = (value: string) =>
    waitFor(
      `${value} to be in force`,
      async () => (await Promise.all(MINIONS.map(motdOf))).every((motd) => motd === value),
      LONG,
    );
  const leads = async ({ url }: ServiceProcess) => {
    const text = await fetch(`${url}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
    return /^colonnade_hook_runner_leads(?:\{[^}]*\})? 1$/mu.test(text);
  };
  const leader = () =>
    waitFor(
      'a leader',
      async () => {
        for (const runner of runners) if (await leads(runner)) return runner;
        return undefined;
      },
      LONG,
    );

  /** All the time: nobody has half a policy, or one that never was, and no two lead. */
  function watch() {
    const faults: string[] = [];
    const stopping = new AbortController();
    const running = (async () => {
      while (!stopping.signal.aborted) {
        for (const minion of MINIONS) {
          const seen = await motdOf(minion).catch((error: Error) => `unreadable: ${error.message}`);
          if (seen !== undefined && !values.includes(seen)) faults.push(`${minion} has ${seen}`);
        }
        // The second answer is asked for when the first has come: who leads then and led before is one.
        const [first, second] = runners as [ServiceProcess, ServiceProcess];
        if ((await leads(first)) && (await leads(second)) && (await leads(first))) faults.push('two lead');
        await sleep(20);
      }
    })();
    return {
      faults,
      async stop() {
        stopping.abort();
        await running;
      },
    };
  }

  /** Whom the master was told to refresh, since an entry. */
  const told = async (since: string) => {
    const entries = await redis.xrange(bridgeRefreshKey(MASTER), `(${since}`, '+');
    return new Set(
      entries.flatMap(([, [, data]]) => (JSON.parse(data ?? '{}') as { minions: string[] }).minions),
    );
  };
  const lastEntry = async () =>
    (await redis.xrevrange(bridgeRefreshKey(MASTER), '+', '-', 'COUNT', 1))[0]?.[0] ?? '0-0';

  const cut = async (victim: (typeof VICTIMS)[number]) => {
    const { nats, mergers } = world.stack;
    if (victim === 'leader') {
      const dead = await leader();
      await dead.kill('SIGKILL');
      return () => dead.restart();
    }
    const parts = victim === 'nats' ? [nats] : mergers;
    for (const part of parts) await part.kill('SIGKILL');
    return async () => {
      for (const part of parts) await part.restart();
    };
  };

  for (const step of STEPS) {
    for (const victim of VICTIMS) {
      test(`at ${step}, ${victim} killed`, async () => {
        const reached = path.join(world.stack.dir, 'reached');
        const go = path.join(world.stack.dir, 'go');
        const hook = path.join(world.stack.hooksDir, step, '05-hold');
        const script = `#!/bin/sh\n# HOOK_KILL_TIMEOUT = 60 s\n: > ${reached}\nwhile [ ! -e ${go} ]; do sleep 0.02; done\n`;
        await mkdir(path.dirname(hook), { recursive: true });
        await writeFile(hook, script, { mode: 0o755 });
        const refuse = path.join(world.stack.hooksDir, 'policy-generation-node-ready', '04-refuse');
        if (step === 'policy-generation-failed') {
          const text = `#!/bin/sh\n[ "$RUDDER_NODE_ID" != ${REFUSED} ]\n`;
          await writeFile(refuse, text, { mode: 0o755 });
        }
        const since = await lastEntry();
        const value = `value ${values.length}`;
        values.push(value);
        await estate.update(pid, value);
        await waitFor(
          'the step',
          () =>
            access(reached).then(
              () => true,
              () => false,
            ),
          LONG,
        );
        const bringBack = await cut(victim);
        await writeFile(go, '');
        await bringBack();
        await inForce(value);
        await waitFor(
          'the refresh of all',
          async () => {
            const minions = await told(since);
            return MINIONS.every((minion) => minions.has(minion));
          },
          LONG,
        );
        for (const minion of MINIONS) await assert.rejects(stat(rules(minion, 'rules.new')), /ENOENT/u);
        await Promise.all([hook, refuse, reached, go].map((file) => rm(file, { force: true })));
        assert.deepEqual(watching.faults, []);
      });
    }
  }

  test('a leader that is stopped keeps the lead, and nobody writes beside it', async () => {
    const stopped = await leader();
    await stopped.kill('SIGSTOP');
    const value = `value ${values.length}`;
    values.push(value);
    await estate.update(pid, value);
    const other = runners.find((one) => one !== stopped) as ServiceProcess;
    // It looks four times a second.
    for (let i = 0; i < 20; i++) {
      assert.equal(await leads(other), false);
      await sleep(50);
    }
    for (const minion of MINIONS) assert.notEqual(await motdOf(minion), value);
    await stopped.kill('SIGCONT');
    await inForce(value);
    assert.deepEqual(watching.faults, []);
  });
});
