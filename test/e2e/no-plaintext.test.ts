import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { BridgeClient } from '@colonnade/embedded';
import { fromPlain, type Value } from '@colonnade/value';
import { Redis } from 'ioredis';
import { findTraces, searchFolder } from '../support/search-traces.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const SECRETS = [
  'plaintext-of-the-first-secret',
  'zweites Geheimnis "quoted" \\ mit пароль\n',
  'a-value-inside-a-map-of-secrets',
];
const minion = { tgt_type: 'minion', master: 'm1', minion_id: 'web' };

describe('the plaintext of a secret', () => {
  let stack: TestStack;
  let bridge: BridgeClient;
  let temporary: string;

  before(async () => {
    temporary = await mkdtemp(path.join(tmpdir(), 'colonnade-tmp-'));
    stack = await stackForTests({ mergers: 2, env: { LOG_LEVEL: 'trace', TMPDIR: temporary } });
    bridge = stack.bridge(await stack.addMaster('m1'));
  });
  after(async () => {
    await stack[Symbol.asyncDispose]();
    await rm(temporary, { recursive: true, force: true });
  });

  test('is in none of our files, streams, stores, logs or lists after a whole run', async () => {
    await useSecrets(stack, bridge);
    await provokeErrors(stack, bridge);
    const { api } = stack;
    const shown: string[] = [];
    for (const [method, where, body] of [
      ['POST', '/pillars/list', {}],
      ['GET', '/explain?master=m1&minion_id=web', undefined],
    ] as const) {
      const answer = await api.call(method, where, body);
      shown.push(
        ...findTraces(`${method} ${where}`, Buffer.from(JSON.stringify(answer.value, bigintAsText)), SECRETS),
      );
    }
    for (const url of [stack.stack.api.url, stack.stack.kms.url, ...stack.stack.mergers.map((m) => m.url)]) {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      shown.push(...findTraces(`${url}/metrics`, Buffer.from(metrics), SECRETS));
    }
    shown.push(...(await searchRedis(stack)));
    const disk = await searchFolder(stack.stack.dir, SECRETS);
    const temp = await searchFolder(temporary, SECRETS);
    assert.ok(disk.files > 15, `only ${disk.files} files were searched`);
    assert.deepEqual([...shown, ...disk.traces, ...temp.traces], []);
  });

  test('would be found: the search sees every form it knows', () => {
    const secret = SECRETS[1] as string;
    const forms = [
      secret,
      Buffer.from(`x${secret}`).toString('base64'),
      Buffer.from(`xy${secret}z`).toString('base64url'),
      JSON.stringify({ a: secret }),
      Buffer.from(secret).toString('hex'),
    ];
    for (const form of forms)
      assert.equal(findTraces('here', Buffer.from(`before ${form} after`), [secret]).length, 1, form);
  });
});

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Seals, merges, reveals, replaces and deletes them, as an estate in use does. */
async function useSecrets({ api, stack }: TestStack, bridge: BridgeClient): Promise<void> {
  const write = writeEstate(api);
  await write.minion('m1', 'web', []);
  const values: Value[] = [
    SECRETS[0] as string,
    SECRETS[1] as string,
    fromPlain({ deep: [{ er: SECRETS[2] as string }] }),
  ];
  const pids: string[] = [];
  for (const [i, value] of values.entries())
    pids.push((await write.pillar(minion, `secret_${i}`, value, true)).pid);
  for (let i = 0; i < 20; i++) {
    const reply = await bridge.ask({ minionId: 'web', pillarenv: 'auto' });
    assert.ok(reply.ok && (reply.pillar as Record<string, Value>).secret_0 === SECRETS[0]);
  }
  const revealed = await api.call('POST', `/pillars/${pids[0]}/reveal`);
  assert.equal((revealed.value as Record<string, Value>).value, SECRETS[0]);
  await write.remove(pids[0] as string);
  await write.pillar(minion, 'secret_0', SECRETS[0] as string, true);
  await stack.mergers[0]?.restart();
  assert.ok((await bridge.ask({ minionId: 'web', pillarenv: 'auto', ttlMs: 5000 })).ok);
}

/** Errors are where a value slips out: send secrets in all the wrong places. */
async function provokeErrors({ api, stack }: TestStack, bridge: BridgeClient): Promise<void> {
  const secret = SECRETS[0] as string;
  const wrong: readonly [string, string, Value][] = [
    ['POST', '/pillars', fromPlain({ ...minion, name: 'secret_0', value: secret, is_secret: true })],
    ['POST', '/pillars', fromPlain({ ...minion, name: 'x', value: secret, is_secret: 'yes' })],
    [
      'POST',
      '/pillars',
      fromPlain({ ...minion, name: 'x', value: { $enc: { ct_b64: secret } }, is_secret: true }),
    ],
    ['POST', '/pillars', fromPlain({ tgt_type: 'minion', name: 'x', value: secret, is_secret: true })],
    ['PUT', '/pillars/absent', fromPlain({ value: secret })],
  ];
  for (const [method, where, body] of wrong) {
    const answer = await api.send(method, where, body);
    assert.ok(answer.status >= 400 && answer.status < 500, `${method} ${where}: ${answer.status}`);
    assert.deepEqual(findTraces(where, Buffer.from(JSON.stringify(answer.value, bigintAsText)), SECRETS), []);
  }
  const broken = await fetch(new URL('/pillars', stack.api.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.secrets.adminToken}`, 'content-type': 'application/json' },
    body: `{"name":"x","value":"${secret}" oops`,
  });
  assert.equal(broken.status, 400);
  assert.deepEqual(findTraces('syntax error', Buffer.from(await broken.text()), SECRETS), []);
  await stack.kms.kill('SIGKILL');
  const failed = await bridge.ask({ minionId: 'web', pillarenv: 'auto' });
  assert.ok(!failed.ok);
  assert.deepEqual(findTraces('bridge error', Buffer.from(failed.error.message), SECRETS), []);
  await api.send('POST', '/pillars', fromPlain({ ...minion, name: 'y', value: secret, is_secret: true }));
  await stack.kms.restart();
}

/** Everything Redis holds: keys, streams, lists. */
async function searchRedis({ stack }: TestStack): Promise<string[]> {
  const { host, port, adminUser, adminPassword } = stack.redis;
  const admin = new Redis({ host, port, username: adminUser, password: adminPassword });
  try {
    const traces: string[] = [];
    for (const key of await admin.keys('*')) {
      traces.push(...findTraces(`redis ${key}`, await readKey(admin, key), SECRETS));
    }
    const slow = JSON.stringify(await admin.call('SLOWLOG', 'GET', '100'));
    return [...traces, ...findTraces('redis slowlog', Buffer.from(slow), SECRETS)];
  } finally {
    admin.disconnect();
  }
}

/** Read by type: a dump is compressed, and would hide what it holds. */
async function readKey(admin: Redis, key: string): Promise<Buffer> {
  const read: Readonly<Record<string, () => Promise<unknown>>> = {
    string: () => admin.get(key),
    list: () => admin.lrange(key, 0, -1),
    stream: () => admin.xrange(key, '-', '+'),
    hash: () => admin.hgetall(key),
  };
  const type = await admin.type(key);
  const found = read[type];
  assert.ok(found !== undefined || type === 'none', `${key} has the unexpected type ${type}`);
  return Buffer.from(JSON.stringify((await found?.()) ?? null));
}
