import assert from 'node:assert/strict';
import { copyFile, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

let dir: TempDir;
let world: World;
let master: TestMaster;
let port: number;

before(async () => {
  dir = await tempDir('tls');
  await makeAuthority(dir.path, 'other');
  const ca = await makeAuthority(dir.path, 'ca');
  const { certFile, keyFile } = await ca.issue('redis', ['DNS:localhost']);
  port = await freePort();
  const files = [`tls-cert-file ${certFile}`, `tls-key-file ${keyFile}`];
  const tls = [`tls-port ${port}`, ...files, `tls-ca-cert-file ${at('ca.crt')}`, 'tls-auth-clients no'];
  world = await startWorld({ redisConfig: tls.join('\n') });
  master = await world.addMaster('salt-1');
  await world.addMinion('salt-1', 'web-1');
  await world.addPillar(rootTarget, 'role', 'any');
});
after(async () => {
  await world?.[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

const at = (name: string) => path.join(dir.path, name);

const refused: readonly (readonly [what: string, host: string, ca: string | undefined])[] = [
  ['signed by nobody it knows', 'localhost', 'other'],
  ['signed by none of the system', 'localhost', undefined],
  ['for another name', '127.0.0.1', 'ca'],
];
for (const [what, host, ca] of refused) {
  test(`a certificate ${what} is refused`, async () => {
    const merger = await world.startMerger({
      REDIS_URL: `rediss://${host}:${port}`,
      ...(ca === undefined ? {} : { REDIS_CA_FILE: at(`${ca}.crt`) }),
    });
    await waitFor('the fault', async () => /redis fault/u.test(await readFile(merger.logFile, 'utf8')));
    assert.match(await readFile(merger.logFile, 'utf8'), /"reason":"[^"]*certificate/u);
    assert.equal((await fetch(`${merger.url}/readyz`)).status, 503);
    assert.doesNotMatch(await readFile(merger.logFile, 'utf8'), /bridge works/u);
    await merger.kill('SIGTERM');
  });
}

test('over TLS, with the CA it was given, a merger answers', async () => {
  const merger = await world.startMerger({
    REDIS_URL: `rediss://localhost:${port}`,
    REDIS_CA_FILE: at('ca.crt'),
  });
  await waitFor('ready', async () => (await fetch(`${merger.url}/readyz`)).ok);
  const reply = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto' });
  assert.deepEqual(outcomeOf(reply), { role: 'any' });
  const list = String(await world.admin.call('CLIENT', 'LIST'));
  const own = list.split('\n').filter((line) => line.includes('user=pillar-merger'));
  assert.equal(own.length, 2);
  for (const line of own) assert.match(line, new RegExp(`laddr=\\S+:${port} `, 'u'));
});

test('a new certificate of a new authority is taken without a restart', async () => {
  await copyFile(at('ca.crt'), at('trusted.crt'));
  const merger = await world.startMerger({
    REDIS_URL: `rediss://localhost:${port}`,
    REDIS_CA_FILE: at('trusted.crt'),
  });
  await waitFor('ready', async () => (await fetch(`${merger.url}/readyz`)).ok);
  // A file that is being replaced does not end the client.
  await rm(at('trusted.crt'));
  await world.admin.call('CLIENT', 'KILL', 'USER', 'pillar-merger');
  await waitFor('ready again', async () => (await fetch(`${merger.url}/readyz`)).ok);
  const authority = await makeAuthority(dir.path, 'next');
  const { certFile, keyFile } = await authority.issue('redis', ['DNS:localhost']);
  const files = ['tls-cert-file', certFile, 'tls-key-file', keyFile, 'tls-ca-cert-file', authority.certFile];
  await world.admin.call('CONFIG', 'SET', ...files);
  await copyFile(authority.certFile, at('trusted.crt'));
  await world.admin.call('CLIENT', 'KILL', 'USER', 'pillar-merger');
  const answered = async () => {
    const reply = await master.client.ask({ minionId: 'web-1', pillarenv: 'auto' }).catch(() => undefined);
    return reply?.ok === true;
  };
  await waitFor('an answer over the new certificate', answered);
});
