import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { BRIDGE_GROUP, bridgeRequestKey } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { minionTarget, outcomeOf, rootTarget, startWorld } from './support.ts';

const REQUESTS = 2000;
const MINIONS = 20;
/** Requests in the air at once. */
const WIDTH = 100;

test('two mergers, one killed in the middle: every request gets one correct reply, or an error past its time', async () => {
  await using world = await startWorld();
  const master = await world.addMaster('salt-1');
  await world.addPillar(rootTarget, 'role', 'any');
  for (let i = 0; i < MINIONS; i++) {
    await world.addMinion('salt-1', `web-${i}`);
    await world.addPillar(minionTarget(`web-${i}`, 'salt-1'), 'me', `web-${i}`);
    await world.addSecret(minionTarget(`web-${i}`, 'salt-1'), 'password', `secret of web-${i}`);
  }
  const mergers = [await world.startMerger(), await world.startMerger()];
  for (const { url } of mergers) await waitFor('ready', async () => (await fetch(`${url}/readyz`)).ok);

  // A slow answer is not a dead merger: nobody takes it over, however long it takes.
  await world.kms.kill('SIGSTOP');
  const slow = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto', ttlMs: 2500 });
  await world.kms.kill('SIGCONT');
  assert.equal(outcomeOf(slow), 'kms_unavailable');
  for (const { logFile } of mergers) assert.doesNotMatch(await readFile(logFile, 'utf8'), /taken over/u);

  const ids = new Set<string>();
  const counts = { ok: 0, error: 0, none: 0 };
  let sent = 0;
  const askOne = async (n: number): Promise<void> => {
    const me = `web-${n % MINIONS}`;
    const reply = await master.client
      .ask({ minionId: me, pillarenv: 'auto', ttlMs: 5000 })
      .catch((e) => void console.log(String(e)));
    if (reply === undefined) {
      counts.none += 1;
      return;
    }
    assert.equal(ids.has(reply.id), false, 'an id was answered twice');
    ids.add(reply.id);
    if (reply.ok) assert.deepEqual(outcomeOf(reply), { role: 'any', me, password: `secret of ${me}` });
    counts[reply.ok ? 'ok' : 'error'] += 1;
  };
  const worker = async (): Promise<void> => {
    while (sent < REQUESTS) {
      sent += 1;
      if (sent === REQUESTS / 2) await mergers[0]?.kill('SIGKILL');
      await askOne(sent);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));

  assert.equal(counts.ok + counts.error + counts.none, REQUESTS);
  // The time is long enough to take over what the dead one held.
  assert.deepEqual(counts, { ok: REQUESTS, error: 0, none: 0 });
  const log = await readFile(String(mergers[1]?.logFile), 'utf8');
  assert.match(log, /request taken over/u, 'the dead one held nothing');
  const key = bridgeRequestKey('salt-1');
  await waitFor('nothing to be left', async () => (await world.admin.xlen(key)) === 0);
  const [pending] = (await world.admin.xpending(key, BRIDGE_GROUP)) as [number];
  assert.equal(pending, 0);
  // No reply was stored that nobody asked for: each was popped, or is about to expire unread.
  const leftovers = await world.admin.keys('colonnade:bridge:rep:*');
  assert.deepEqual(leftovers, []);
});
