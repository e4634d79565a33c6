import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AuditEvent } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { minionTarget, outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

let world: World;
let master: TestMaster;

before(async () => {
  world = await startWorld();
  master = await world.addMaster('salt-1');
  await world.addMinion('salt-1', 'plain-1');
  await world.addMinion('salt-1', 'secret-1');
  await world.addPillar(rootTarget, 'role', 'none');
  await world.addSecret(minionTarget('secret-1', 'salt-1'), 'password', 'never on record');
  await world.startMerger();
  await waitFor('an answer', async () => (await ask('plain-1')).ok);
});
after(() => world[Symbol.asyncDispose]());

const ask = (minionId: string, pillarenv = 'auto') => master.client.ask({ minionId, pillarenv });

async function recordsOf(minionId: string): Promise<readonly AuditEvent[]> {
  const records = await world.records();
  return records.filter((r) => r.objectRef?.subresource === 'pillar' && r.objectRef.name === minionId);
}

for (const [minion, secrets] of [
  ['plain-1', '0'],
  ['secret-1', '1'],
] as const) {
  test(`a merge with ${secrets} secrets is on record before its reply`, async () => {
    const before = (await recordsOf(minion)).length;
    assert.ok((await ask(minion)).ok);
    const records = await recordsOf(minion);
    assert.equal(records.length, before + 1);
    const last = records.at(-1);
    assert.equal(last?.user.username, 'master:salt-1');
    assert.equal(last?.responseStatus?.code, 200);
    assert.equal(last?.annotations?.['colonnade/secrets'], secrets);
    assert.equal(last?.annotations?.['colonnade/pillarenv'], 'auto');
    assert.match(last?.annotations?.['colonnade/clock'] ?? '', /^[1-9][0-9]*$/u);
  });
}

test('a wave of merges is on record, each one, in fewer messages', async () => {
  const before = (await recordsOf('plain-1')).length;
  const messagesBefore = await messages();
  const replies = await Promise.all(Array.from({ length: 300 }, () => ask('plain-1')));
  assert.ok(replies.every((reply) => reply.ok));
  assert.equal((await recordsOf('plain-1')).length, before + 300);
  const sent = (await messages()) - messagesBefore;
  assert.ok(sent < 250, `${sent} messages for 300 merges`);
});

test('a merge that fails is on record too, with its code', async () => {
  await world.kms.kill('SIGKILL');
  const reply = await ask('secret-1');
  assert.equal(outcomeOf(reply), 'kms_unavailable');
  await waitFor('its record', async () =>
    (await recordsOf('secret-1')).some(
      ({ responseStatus }) => responseStatus?.code === 503 && responseStatus.reason === 'kms_unavailable',
    ),
  );
  assert.ok((await ask('plain-1')).ok);
});

test('without the audit stream no merge is answered, and it is again with it', async () => {
  await world.bus.nats.kill('SIGKILL');
  await waitFor('unavailable', async () => outcomeOf(await ask('plain-1')) === 'unavailable');
  await world.bus.nats.restart();
  await waitFor('an answer', async () => (await ask('plain-1')).ok);
});

async function messages(): Promise<number> {
  const witness = await world.bus.witness();
  const info = await witness.request('$JS.API.STREAM.INFO.AUDIT');
  await witness.close();
  return info.json<{ state: { messages: number } }>().state.messages;
}
