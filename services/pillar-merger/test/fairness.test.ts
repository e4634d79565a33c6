import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { minionTarget, outcomeOf, rootTarget, startWorld } from './support.ts';

const CONCURRENCY = 8;

test("requests of one master that hang leave room for another's, and readiness tells when there is none", async () => {
  await using world = await startWorld();
  const greedy = await world.addMaster('greedy');
  const modest = await world.addMaster('modest');
  await world.addMinion('greedy', 'sealed');
  await world.addMinion('modest', 'sealed');
  await world.addMinion('modest', 'plain');
  await world.addPillar(rootTarget, 'role', 'none');
  await world.addSecret(minionTarget('sealed', 'greedy'), 'password', 'x');
  await world.addSecret(minionTarget('sealed', 'modest'), 'password', 'x');
  const merger = await world.startMerger({ MERGER_CONCURRENCY: String(CONCURRENCY) });
  const askPlain = () => modest.client.ask({ minionId: 'plain', pillarenv: 'auto', ttlMs: 2000 });
  const isReady = async () => (await fetch(`${merger.url}/readyz`)).ok;
  await waitFor('an answer', async () => (await askPlain()).ok);
  await waitFor('ready', isReady);

  // Opening hangs: nobody answers, and nobody refuses.
  await world.kms.kill('SIGSTOP');
  const flood = (client: typeof greedy.client) =>
    Array.from({ length: 4 * CONCURRENCY }, () =>
      client.ask({ minionId: 'sealed', pillarenv: 'auto', ttlMs: 9000 }).catch(() => undefined),
    );
  const hanging = flood(greedy.client);
  await waitFor('them to be under way', async () => (await pendingOf('greedy')) >= CONCURRENCY / 2);
  for (let i = 0; i < 5; i += 1) assert.deepEqual(outcomeOf(await askPlain()), { role: 'none' });

  const more = flood(modest.client);
  await waitFor('not to be ready', async () => !(await isReady()), { limitMs: 8000 });
  await world.kms.kill('SIGCONT');
  await Promise.all([...hanging, ...more]);
  await waitFor('an answer', async () => (await askPlain()).ok);
  await waitFor('ready again', isReady, { limitMs: 15_000 });

  async function pendingOf(master: string): Promise<number> {
    const [count] = (await world.admin.xpending(`colonnade:bridge:req:${master}`, 'mergers')) as [number];
    return count;
  }
});
