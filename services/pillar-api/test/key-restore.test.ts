import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { type ApiClient, createApiClient, startService } from '@colonnade/embedded';
import { startRealBus } from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { plain, sendPlain, startWorld } from './support.ts';

const run = promisify(execFile);

/** As docs/keys.md says it: the store, then the state folder, while everything runs. */
async function backUp(world: { dir: string; storePath: string }, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  using db = new DatabaseSync(world.storePath);
  db.exec(`VACUUM INTO '${path.join(to, 'backup.db')}'`);
  await run('tar', ['-C', path.join(world.dir, 'kms'), '-cf', path.join(to, 'kms-state.tar'), '.']);
}

async function pillarsKey(admin: ApiClient) {
  type Version = { name: string; state: string; opens: boolean; values: number };
  const { items } = plain(await admin.call('GET', '/keys')) as { items: Version[] };
  return items.filter(({ name }) => name === 'pillars');
}

test('on an empty machine, store, state folder and root key together give every secret back', async () => {
  await using backup = await tempDir('backup');
  const rootKey = randomBytes(32);
  const from = path.join(backup.path, 'copies');
  const pids: string[] = [];
  let adminToken: string;
  {
    const kmsEnv = { KMS_ROOT_KEY_B64: rootKey.toString('base64'), KMS_KEY_PREPUBLISH_S: '1' };
    await using world = await startWorld({ env: { REWRAP_RUN_MS: '0' }, kmsEnv });
    adminToken = world.adminToken;
    const create = async (name: string) => {
      const body = { tgt_type: 'root', name, value: `value of ${name}`, is_secret: true };
      pids.push(String(plain(await sendPlain(world.admin, 'POST', '/pillars', body)).pid));
    };
    await create('s0');
    await world.admin.call('POST', '/keys/pillars/rotate');
    await waitFor('the next version to seal', async () => {
      const [, next] = await pillarsKey(world.admin);
      return next?.state === 'active' ? true : undefined;
    });
    await create('s1');
    await backUp(world, from);
    // After the backup, and so not in it.
    await create('s2');
  }

  await using fresh = await tempDir('fresh');
  const at = (name: string) => path.join(fresh.path, name);
  await using bus = await startRealBus();
  await mkdir(at('kms'), { mode: 0o700 });
  await run('tar', ['-C', at('kms'), '-xpf', path.join(from, 'kms-state.tar')]);
  const startKms = async (key: Buffer, name: string) => {
    await writeFile(at(name), key, { mode: 0o600 });
    return startService({
      ...{ name: 'crypto-kms', portVariable: 'OPS_PORT', logFile: at(`${name}.log`) },
      env: {
        ...{ KMS_ROOT_KEY_FILE: at(name), KMS_STATE_DIR: at('kms'), OPS_PORT: '0', NATS_URL: bus.nats.url },
        NATS_NKEY_SEED: bus.nkeySeedOf('crypto-kms'),
      },
    });
  };
  const before = await readdir(at('kms'), { recursive: true });
  await assert.rejects(startKms(randomBytes(32), 'wrong-key'), /root key/u);
  assert.deepEqual(await readdir(at('kms'), { recursive: true }), before);
  await using _kms = await startKms(rootKey, 'root-key');
  await cp(path.join(from, 'backup.db'), at('estate.sqlite'));
  await using api = await startService({
    ...{ name: 'pillar-api', portVariable: 'HTTP_PORT', logFile: at('pillar-api.log') },
    env: {
      ...{ STORE_PATH: at('estate.sqlite'), STORE_RESTORED: 'true', HTTP_PORT: '0', DELETION_HOOKS: 'off' },
      ...{ NATS_URL: bus.nats.url, REWRAP_RUN_MS: '0' },
      NATS_NKEY_SEED: bus.nkeySeedOf('pillar-api'),
    },
  });
  const admin = createApiClient(api.url, adminToken);
  const reveal = async (pid: string) => plain(await admin.send('POST', `/pillars/${pid}/reveal`)).value;
  assert.deepEqual(await Promise.all(pids.map(reveal)), ['value of s0', 'value of s1', undefined]);
  assert.deepEqual(
    (await pillarsKey(admin)).map(({ opens, values }) => [opens, values]),
    [
      [true, 2],
      [true, 2],
    ],
  );
  const made = await sendPlain(admin, 'POST', '/pillars', {
    ...{ tgt_type: 'root', name: 'after', value: 'new', is_secret: true },
  });
  assert.equal(await reveal(String(plain(made).pid)), 'new');
});
