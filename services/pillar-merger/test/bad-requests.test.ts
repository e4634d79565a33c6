import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  BRIDGE_GROUP,
  type BridgeErrorCode,
  bridgeReplyKey,
  bridgeRequestKey,
  encodeText,
  LIMITS,
  zBridgeRequest,
} from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { minionTarget, outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

let world: World;
let master: TestMaster;
let other: TestMaster;

before(async () => {
  world = await startWorld();
  master = await world.addMaster('salt-1', { envs: ['prod'] });
  other = await world.addMaster('salt-2');
  await world.addMinion('salt-1', 'web-1');
  await world.addMinion('salt-1', 'db-1');
  await world.addPillar(rootTarget, 'role', 'none');
  await world.addSecret(minionTarget('db-1', 'salt-1'), 'password', 'of db-1');
  await world.startMerger();
  await waitFor('an answer', async () => (await ask()).ok);
});
after(() => world[Symbol.asyncDispose]());

type Fields = Record<string, unknown>;

const ask = (pillarenv = 'auto', minionId = 'web-1') => master.client.ask({ minionId, pillarenv });

function requestText(changes: Fields = {}): string {
  const good: Fields = {
    v: 1,
    event: 'master_get_pillar_data',
    master: 'salt-1',
    minion_id: 'web-1',
    pillarenv: 'auto',
    token: master.token,
    ttl_ms: 2000,
  };
  return JSON.stringify({ ...good, ...changes });
}

async function replyTo(payload: string): Promise<unknown> {
  const id = await master.client.sendRaw(payload);
  const reply = await master.client.receive(id, 3000);
  assert.ok(reply, 'no reply');
  assert.equal(reply.id, id);
  return outcomeOf(reply);
}

const streamKey = bridgeRequestKey('salt-1');

async function assertNothingLeft(): Promise<void> {
  await waitFor('the stream to be empty', async () => (await world.admin.xlen(streamKey)) === 0);
  const [pending] = (await world.admin.xpending(streamKey, BRIDGE_GROUP)) as [number];
  assert.equal(pending, 0);
}

const big = 'x'.repeat(LIMITS.bridgeRequestBytes);
const bad: readonly (readonly [what: string, payload: () => string, code: BridgeErrorCode])[] = [
  ['not JSON', () => 'master_get_pillar_data', 'bad_request'],
  ['nothing', () => '', 'bad_request'],
  ['a list', () => '[]', 'bad_request'],
  ['a field twice', () => requestText().replace('{', '{"v":1,'), 'bad_request'],
  ['a lone surrogate', () => requestText().replace('web-1', '\\ud800'), 'bad_request'],
  ['too deep', () => '['.repeat(100) + ']'.repeat(100), 'bad_request'],
  ['no token', () => requestText({ token: undefined }), 'bad_request'],
  ['no minion', () => requestText({ minion_id: undefined }), 'bad_request'],
  ['an unknown field', () => requestText({ reply_to: 'colonnade:bridge:rep:salt-2:1-1' }), 'bad_request'],
  ['another event', () => requestText({ event: 'get_grains' }), 'bad_request'],
  ['another version', () => requestText({ v: 2 }), 'bad_request'],
  ['a float as version', () => requestText().replace('"v":1', '"v":1.0'), 'bad_request'],
  ['no time', () => requestText({ ttl_ms: LIMITS.bridgeTtlMinMs - 1 }), 'bad_request'],
  ['a separator in the minion id', () => requestText({ minion_id: 'web-1;master:salt-2' }), 'bad_request'],
  ['an empty pillarenv', () => requestText({ pillarenv: '' }), 'bad_request'],
  ['a control character', () => requestText({ pillarenv: 'base\n' }), 'bad_request'],
  [
    'too many environments',
    () => requestText({ pillarenv: new Array(65).fill('base').join(',') }),
    'bad_request',
  ],
  ['oversized', () => requestText({ traceparent: big }), 'bad_request'],
  ["another master's name", () => requestText({ master: 'salt-2' }), 'forbidden'],
  [
    "another master's name and token",
    () => requestText({ master: 'salt-2', token: other.token }),
    'forbidden',
  ],
  ["another master's token", () => requestText({ token: other.token }), 'unauthorized'],
  ['no token at all', () => requestText({ token: 'secret' }), 'unauthorized'],
  ['a token of no algorithm', () => requestText({ token: unsigned(master.token) }), 'unauthorized'],
  ['a token changed', () => requestText({ token: changed(master.token) }), 'unauthorized'],
  ['an unknown minion', () => requestText({ minion_id: 'new-1' }), 'unknown_minion'],
  ["another minion's scope", () => requestText({ pillarenv: 'minion_id:db-1;master:salt-1' }), 'forbidden'],
  [
    'base and a foreign scope',
    () => requestText({ pillarenv: 'base,minion_id:db-1;master:salt-1' }),
    'forbidden',
  ],
  ['a task', () => requestText({ pillarenv: 'task:1' }), 'forbidden'],
  ['an environment not listed', () => requestText({ pillarenv: 'staging' }), 'forbidden'],
];

function unsigned(token: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'colonnade-master+jwt' })).toString(
    'base64url',
  );
  return `${header}.${token.split('.')[1]}.`;
}

/** The same signature under another subject. */
function changed(token: string): string {
  const [header, body = '', signature] = token.split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, exp: 9999999999 })).toString('base64url');
  return `${header}.${forged}.${signature}`;
}

for (const [what, payload, code] of bad) {
  test(`${what}: ${code}, and the entry is gone`, async () => {
    assert.equal(await replyTo(payload()), code);
    await assertNothingLeft();
  });
}

test('bytes that are no UTF-8, and an entry without the field of a request: bad_request', async () => {
  const broken = Buffer.from(requestText().replace('web-1', 'web-\u00e9'), 'latin1');
  for (const fields of [
    ['data', broken],
    ['other', requestText()],
    ['data', requestText(), 'reply_to', 'x'],
  ]) {
    const id = String(await world.admin.xadd(streamKey, '*', ...(fields as [string, Buffer])));
    const reply = await master.client.receive(id, 3000);
    assert.ok(reply);
    assert.equal(outcomeOf(reply), 'bad_request');
  }
  await assertNothingLeft();
});

test('what is forbidden or unauthorized is on record, with who asked for what', async () => {
  await replyTo(requestText({ pillarenv: 'minion_id:db-1;master:salt-1' }));
  const records = await world.records();
  const denials = records.filter(
    ({ user }) => user.username === 'master:salt-1' && user.groups?.length === 1,
  );
  const found = denials.filter(
    (r) => r.annotations?.['colonnade/pillarenv'] === 'minion_id:db-1;master:salt-1',
  );
  assert.ok(found.length >= 1);
  assert.equal(found[0]?.responseStatus?.code, 403);
  assert.deepEqual(found[0]?.objectRef, {
    ...{ resource: 'minions', subresource: 'pillar', namespace: 'salt-1', name: 'web-1' },
    ...{ apiGroup: 'colonnade', apiVersion: 'v1' },
  });
  assert.ok(denials.some((r) => r.responseStatus?.reason === 'unauthorized'));
  assert.ok(
    !JSON.stringify(records, (_, x) => (typeof x === 'bigint' ? String(x) : x)).includes(master.token),
  );
});

test('a flood of refusals is counted, and does not flood the records', async () => {
  const before = (await world.records()).length;
  const floods = Array.from({ length: 200 }, () => replyTo(requestText({ pillarenv: 'task:flood' })));
  for (const code of await Promise.all(floods)) assert.equal(code, 'forbidden');
  const records = (await world.records()).slice(before);
  assert.ok(records.length < 40, String(records.length));
});

test('a late request is dropped without a reply', async () => {
  await world.addMaster('salt-late');
  const key = bridgeRequestKey('salt-late');
  await waitFor('its stream', async () => (await world.admin.exists(key)) === 1);
  const id = `${Date.now() - 2500}-0`;
  await world.admin.xadd(key, id, 'data', requestText({ master: 'salt-late' }));
  await waitFor('it to be dropped', async () => (await world.admin.xlen(key)) === 0);
  assert.equal(await world.admin.exists(bridgeReplyKey('salt-late', id)), 0);
});

test('a replayed request gets what a new one gets', async () => {
  const replayed = requestText();
  assert.deepEqual(await replyTo(replayed), { role: 'none' });
  await world.addPillar(minionTarget('web-1', 'salt-1'), 'role', 'web');
  assert.deepEqual(await replyTo(replayed), { role: 'web' });
  const fields = { id: 'salt-1', envs: ['prod'], onUnknownMinion: 'refuse' as const };
  await world.putMaster({ ...fields, tokenIds: [] });
  assert.equal(await replyTo(replayed), 'unauthorized');
  await world.putMaster({ ...fields, tokenIds: [master.tokenId] });
  assert.deepEqual(await replyTo(replayed), { role: 'web' });
});

test('a master that was removed: unknown_master', async () => {
  const gone = await world.addMaster('salt-gone');
  await waitFor(
    'its stream to be read',
    async () => outcomeOf(await gone.client.ask({ minionId: 'x', pillarenv: 'auto' })) === 'unknown_minion',
  );
  await world.write({ kind: 'master.delete', id: 'salt-gone', expect: undefined });
  assert.equal(outcomeOf(await gone.client.ask({ minionId: 'x', pillarenv: 'auto' })), 'unknown_master');
});

test('a plain environment the master is given works, and one the estate knows nothing of is empty', async () => {
  assert.deepEqual(outcomeOf(await ask('prod')), {});
});

test('a reply is canonical and of the schema', async () => {
  const id = await master.client.sendRaw(encodeText(zBridgeRequest, JSON.parse(requestText())));
  const reply = await waitFor('the reply', () => world.admin.lpop(bridgeReplyKey('salt-1', id)));
  assert.match(reply, /^\{"clock":\d+,"id":"[\d-]+","ok":true,"pillar":\{"role":"web"\},"v":1\}$/u);
});
