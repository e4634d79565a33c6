import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { type Bus, connectBus } from '@colonnade/bus';
import {
  type BusUser,
  estateListTouched,
  kmsListKeys,
  kmsOpenForMerger,
  mergerCompile,
  mergerExplain,
  mergerRefresh,
  type OpenContext,
  startCall,
} from '@colonnade/contracts';
import { type ApiClient, createApiClient, type MasterCredentials } from '@colonnade/embedded';
import { openSqliteReader } from '@colonnade/estate-store';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { Redis } from 'ioredis';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const root = { tgt_type: 'root' };
const vault = { tgt_type: 'collection', collection_id: 'vault' };
const web = { tgt_type: 'minion', master: 'm1', minion_id: 'web' };
const db = { tgt_type: 'minion', master: 'm2', minion_id: 'db' };
/** Name, place, and for each secret what nobody is to see. */
const SECRETS = [
  ['everybodys', root, 'secret of everybody'],
  ['webs', web, 'secret of web'],
  ['dbs', db, 'secret of db'],
  ['vaults', vault, 'secret of the vault'],
] as const;
type Made = { pid: string; pillarenv: string };
const PLAIN = 'a plain message of the day';

/** Parts of a whole installation in the wrong hands; what SECURITY.md says of them. */
describe('who has stolen', () => {
  let stack: TestStack;
  let m1: MasterCredentials;
  const made = new Map<string, Made>();
  const owned = new AsyncDisposableStack();
  before(async () => {
    stack = owned.use(await stackForTests());
    m1 = await stack.addMaster('m1');
    await stack.addMaster('m2');
    const write = writeEstate(stack.api);
    await write.collection('vault');
    await write.minion('m1', 'web', []);
    await write.minion('m2', 'db', ['vault']);
    await write.pillar(root, 'motd', PLAIN);
    for (const [name, place, value] of SECRETS)
      made.set(name, (await write.pillar(place, name, value, true)) as Made);
  });
  after(() => owned.disposeAsync());

  const asUser = async (user: BusUser): Promise<Bus> => {
    const { nats, secrets } = stack.stack;
    const nkeySeed = (await readFile(secrets.busNkeyFiles[user], 'utf8')).trim();
    const logger = { info: () => {}, warn: () => {}, error: () => {} };
    return owned.use(await connectBus({ servers: nats.url, user, nkeySeed, name: 'thief', logger }));
  };
  const call = () => startCall(5000);
  const shown = (value: unknown) =>
    JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one));
  const revealed = (text: string) =>
    SECRETS.filter(([, , value]) => text.includes(value)).map(([name]) => name);
  const tokenOf = async (...roles: string[]): Promise<ApiClient> => {
    const { value } = await stack.api.call('POST', '/tokens', fromPlain({ sub: roles.join('-'), roles }));
    return createApiClient(stack.stack.api.url, (toPlain(value ?? null) as { token: string }).token);
  };
  test('the nkey of hook-runner sees the plain pillars of every minion, secrets only sealed, and has masters refresh', async () => {
    const bus = await asUser('hook-runner');
    const minions = [
      { master: 'm1', minion_id: 'web' },
      { master: 'm2', minion_id: 'db' },
    ];
    const { items } = await bus.request(mergerCompile, { minions }, call());
    const text = shown(items);
    assert.ok(items.every(({ ok }) => ok) && text.includes(PLAIN) && text.includes('$enc'));
    assert.deepEqual(revealed(text), []);
    const named = await bus.request(estateListTouched, { touched: { kind: 'all' }, limit: 100 }, call());
    assert.deepEqual(named.minions.map(({ id }) => id).sort(), ['db', 'web']);
    const refresh = { master: 'm2', generation: 'g', minions: ['db'] };
    assert.match((await bus.request(mergerRefresh, refresh, call())).entry, /^\d+-\d+$/u);
    await assert.rejects(bus.request(kmsListKeys, {}, call()));
  });

  test('the nkey of operator sees the plain pillars of every minion, and no secret', async () => {
    const bus = await asUser('operator');
    for (const [master, minion_id] of [
      ['m1', 'web'],
      ['m2', 'db'],
    ] as const) {
      const text = shown(await bus.request(mergerExplain, { master, minion_id, pillarenv: 'auto' }, call()));
      assert.ok(text.includes(PLAIN));
      assert.deepEqual(revealed(text), []);
    }
  });

  /** The sealed values as they lie in the store. */
  async function stolenValues(): Promise<Map<string, { context: OpenContext; enc: Value }>> {
    await using reader = await openSqliteReader({ path: stack.stack.storePath });
    const scopes = [...new Set(Array.from(made.values(), ({ pillarenv }) => pillarenv))];
    const found = await reader.snapshot({
      ...{ since: undefined, scopes, collections: false, masters: [], minions: [] },
    });
    const rows = [...found.scopes.values()].flat();
    return new Map(
      rows.map(({ tgtType, tgtId, pillarenv, name, value }) => [
        name,
        { context: { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name }, enc: value },
      ]),
    );
  }
  test('the nkey of pillar-merger, a master’s token and the store opens that master’s minions and every shared scope, no other’s minions', async () => {
    const bus = await asUser('pillar-merger');
    const stolen = await stolenValues();
    const names = SECRETS.map(([name]) => name);
    const items = names.map((name) => stolen.get(name) ?? assert.fail(name));
    const ask = { master: 'm1', minion_id: 'web', items };
    const { items: results } = await bus.request(kmsOpenForMerger, { ...ask, token: m1.token }, call());
    assert.deepEqual(
      results.map((one, at) => [names[at], one.ok ? one.result : one.error.code]),
      [
        ['everybodys', 'secret of everybody'],
        ['webs', 'secret of web'],
        ['dbs', 'kms_refused'],
        // web is no member: the KMS knows no memberships.
        ['vaults', 'secret of the vault'],
      ],
    );
    await assert.rejects(bus.request(kmsOpenForMerger, { ...ask, token: 'x' }, call()), {
      code: 'unauthorized',
    });
    await assert.rejects(
      bus.request(kmsOpenForMerger, { ...ask, master: 'm2', minion_id: 'db', token: m1.token }, call()),
      { code: 'unauthorized' },
    );
  });

  test('a backup of the store has plain pillars and names, secrets only sealed, of tokens only hashes, and what was plain then', async () => {
    const adminToken = stack.stack.secrets.adminToken;
    const write = writeEstate(stack.api);
    const { pid } = await write.pillar(root, 'late', 'plain when the backup was made');
    const copy = path.join(stack.stack.dir, 'stolen.db');
    backUp(stack.stack.storePath, copy);
    const etag = (await stack.api.call('GET', `/pillars/${pid}`)).headers.get('etag') ?? '';
    const sealed = await stack.api.send('POST', `/pillars/${pid}/seal`, undefined, { 'if-match': etag });
    assert.equal(sealed.status, 200);
    const text = (await readFile(copy)).toString('latin1');
    for (const visible of [PLAIN, 'vaults', 'vault', 'plain when the backup was made', '$enc'])
      assert.ok(text.includes(visible), visible);
    assert.deepEqual(revealed(text), []);
    for (const token of [adminToken, m1.token]) {
      assert.ok(!text.includes(token));
      assert.ok(!text.includes(token.split(/[_.]/u).at(-1) ?? assert.fail()));
    }
    // A backup made now does not have it any more.
    const next = path.join(stack.stack.dir, 'next.db');
    backUp(stack.stack.storePath, next);
    assert.ok(!(await readFile(next)).toString('latin1').includes('plain when the backup was made'));
  });

  test('a viewer’s token sees plain pillars, and reveals and writes nothing', async () => {
    const viewer = await tokenOf('viewer');
    const list = await viewer.send('POST', '/pillars/list', fromPlain({}));
    assert.ok(shown(list.value).includes(PLAIN));
    assert.deepEqual(revealed(shown(list.value)), []);
    for (const { pid } of made.values())
      assert.equal((await viewer.send('POST', `/pillars/${pid}/reveal`)).status, 403);
    const body = fromPlain({ ...root, name: 'mine', value: 1 });
    assert.equal((await viewer.send('POST', '/pillars', body)).status, 403);
  });

  test('a secret-reader’s token reveals every secret, one by one, and writes nothing', async () => {
    const reader = await tokenOf('secret-reader');
    for (const [name, , value] of SECRETS) {
      const answer = await reader.send('POST', `/pillars/${made.get(name)?.pid}/reveal`);
      assert.equal((toPlain(answer.value ?? null) as { value: string }).value, value);
    }
    const body = fromPlain({ ...root, name: 'mine', value: 1 });
    assert.equal((await reader.send('POST', '/pillars', body)).status, 403);
  });

  test('an editor’s token and a minion reads the secrets of a collection by putting the minion into it; it reveals nothing', async () => {
    const editor = await tokenOf('editor');
    const bridge = stack.bridge(m1);
    const merged = async () => {
      const reply = await bridge.ask({ minionId: 'web', pillarenv: 'auto' });
      assert.ok(reply.ok, shown(reply));
      return revealed(shown(reply.pillar));
    };
    assert.deepEqual(await merged(), ['everybodys', 'webs']);
    await writeEstate(editor).minion('m1', 'web', ['vault']);
    assert.deepEqual(await merged(), ['everybodys', 'webs', 'vaults']);
    for (const { pid } of made.values())
      assert.equal((await editor.send('POST', `/pillars/${pid}/reveal`)).status, 403);
    for (const [url, body] of [
      ['/tokens', { sub: 'x', roles: ['viewer'] }],
      ['/masters', { id: 'm9' }],
      ['/masters/m1/enrolments', {}],
    ] as const)
      assert.equal((await editor.send('POST', url, fromPlain(body))).status, 403, url);
  });

  test('the bridge’s Redis finds no credential in it for the store, the bus or the KMS', async () => {
    const bridge = stack.bridge(m1);
    assert.ok((await bridge.ask({ minionId: 'web', pillarenv: 'auto', ttlMs: 5000 })).ok);
    const { redis, secrets, storePath } = stack.stack;
    const { host, port, adminUser: username } = redis;
    const admin = new Redis({
      host,
      port,
      username,
      password: secrets.redisAdminPassword,
      disableClientInfo: true,
    });
    const parts: unknown[] = [
      await admin.call('ACL', 'LIST'),
      await admin.call('CONFIG', 'GET', '*'),
      await admin.call('FUNCTION', 'LIST', 'WITHCODE'),
      await admin.info(),
    ];
    const keys = await admin.keys('*');
    for (const key of keys) parts.push(key, (await admin.dumpBuffer(key))?.toString('latin1'));
    await admin.quit();
    const held = JSON.stringify(parts);
    assert.ok(keys.length > 1 && held.includes('pillar-merger'), 'something is held');
    const files = [...Object.values(secrets.busNkeyFiles), secrets.kekFile, secrets.rootKeyFile];
    for (const secret of [
      ...(await Promise.all(files.map((file) => readFile(file, 'utf8')))),
      secrets.adminToken,
    ])
      assert.ok(!held.includes(secret.trim()));
    assert.ok(!held.includes(storePath) && !held.includes(stack.stack.nats.url));
  });

  test('an admin’s token does what the API can, and is shown no key', async () => {
    const { value } = await stack.api.call('GET', '/keys');
    const text = shown(value);
    const { kekFile, rootKeyFile } = stack.stack.secrets;
    for (const file of [kekFile, rootKeyFile])
      assert.ok(!text.includes((await readFile(file, 'utf8')).trim()));
    const { items } = toPlain(value ?? null) as { items: object[] };
    const fields = new Set(items.flatMap((one) => Object.keys(one)));
    for (const field of fields) assert.ok(!/key|sealed|secret|private/u.test(field), field);
  });
});

/** As docs/keys.md says it. */
function backUp(from: string, to: string): void {
  const db = new DatabaseSync(from, { readOnly: true });
  try {
    db.exec(`VACUUM INTO '${to}'`);
  } finally {
    db.close();
  }
}
