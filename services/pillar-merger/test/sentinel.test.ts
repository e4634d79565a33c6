import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BRIDGE_ALIVE_KEY } from '@colonnade/contracts';
import { Redis } from 'ioredis';
import { freePort } from '../../../test/support/free-port.ts';
import { findForTests, redisForTests } from '../../../test/support/servers.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { outcomeOf, rootTarget, startWorld, type World } from './support.ts';

const NAME = 'colonnade-bridge';
let dir: TempDir;
let world: World;
let sentinel: ChildProcess;
let port: number;

before(async () => {
  dir = await tempDir('sentinel');
  world = await startWorld();
  port = await freePort();
  sentinel = await startSentinel();
});
after(async () => {
  sentinel?.kill('SIGKILL');
  await world?.[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

async function startSentinel(): Promise<ChildProcess> {
  const { host, port: redisPort, adminUser, adminPassword } = world.redis;
  const file = path.join(dir.path, 'sentinel.conf');
  const lines = [
    ...[
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${dir.path}`,
      `sentinel monitor ${NAME} ${host} ${redisPort} 1`,
    ],
    ...[`sentinel auth-user ${NAME} ${adminUser}`, `sentinel auth-pass ${NAME} ${adminPassword}`],
  ];
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  const { path: binary } = await findForTests('redis');
  const child = spawn(binary, [file, '--sentinel'], { stdio: 'ignore' });
  await once(child, 'spawn');
  return child;
}

test('a merger finds its Redis through Sentinels, one of which is away, and follows it to another', async () => {
  const master = await world.addMaster('salt-1');
  await world.addMinion('salt-1', 'web-1');
  await world.addPillar(rootTarget, 'role', 'any');
  const merger = await world.startMerger({
    REDIS_URL: 'redis://nowhere.invalid:1',
    REDIS_SENTINELS: `127.0.0.1:${await freePort()}, 127.0.0.1:${port}`,
  });
  await waitFor('ready', async () => (await fetch(`${merger.url}/readyz`)).ok);
  const reply = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto' });
  assert.deepEqual(outcomeOf(reply), { role: 'any' });

  await using other = await redisForTests({ aclUsers: [await aclOf('pillar-merger')] });
  const asked = new Redis({ port, host: '127.0.0.1' });
  await asked.call('SENTINEL', 'REMOVE', NAME);
  await asked.call('SENTINEL', 'MONITOR', NAME, other.host, other.port, '1');
  asked.disconnect();
  await world.redis.kill('SIGKILL');
  const { host, port: otherPort, adminUser: username, adminPassword: password } = other;
  const admin = new Redis({ host, port: otherPort, username, password });
  await waitFor('the merger at the other', async () => (await admin.exists(BRIDGE_ALIVE_KEY)) === 1);
  admin.disconnect();
});

/** The line of a user in an ACL file. */
async function aclOf(user: string): Promise<string> {
  const lines = (await world.admin.call('ACL', 'LIST')) as string[];
  const line = lines.find((one) => one.startsWith(`user ${user} `));
  assert.ok(line);
  return line;
}
