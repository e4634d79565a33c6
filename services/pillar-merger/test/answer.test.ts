import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { collectionTarget, minionTarget, outcomeOf, rootTarget, startWorld } from './support.ts';

test('a master gets the merged pillar of its minion over Redis', async () => {
  await using world = await startWorld();
  const master = await world.addMaster('salt-1');
  await world.addCollection('eu');
  await world.addCollection('web', 'eu');
  await world.addMinion('salt-1', 'web-1', ['web']);
  await world.addPillar(rootTarget, 'role', 'none');
  await world.addSecret(rootTarget, 'password', 'from root');
  await world.addPillar(collectionTarget('eu', 'ann'), 'region', 'eu');
  await world.addPillar(collectionTarget('eu', 'ann'), 'role', 'member');
  await world.addPillar(collectionTarget('web', 'ann'), 'role', 'web');
  await world.addSecret(minionTarget('web-1', 'salt-1'), 'password', 'of web-1');
  await world.addPillar(minionTarget('web-1', 'salt-1'), 'id', 1);
  const merger = await world.startMerger();
  await waitFor('ready', async () => (await fetch(`${merger.url}/readyz`)).ok);

  const reply = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto' });
  assert.deepEqual(outcomeOf(reply), { role: 'web', region: 'eu', password: 'of web-1', id: 1 });
});
