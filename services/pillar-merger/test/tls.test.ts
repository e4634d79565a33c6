import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../../test/support/free-port.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { outcomeOf, rootTarget, startWorld, type TestMaster, type World } from './support.ts';

const openssl = (...args: readonly string[]) => promisify(execFile)('openssl', args);

let dir: TempDir;
let world: World;
let master: TestMaster;
let port: number;

before(async () => {
  dir = await tempDir('tls');
  await makeAuthority('ca');
  await makeAuthority('other');
  await makeCertificate('localhost');
  port = await freePort();
  const files = [`tls-cert-file ${at('server.crt')}`, `tls-key-file ${at('server.key')}`];
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

async function makeAuthority(name: string): Promise<void> {
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    at(`${name}.key`),
  ];
  await openssl('req', '-x509', ...key, '-subj', `/CN=${name}`, '-days', '2', '-out', at(`${name}.crt`));
}

async function makeCertificate(host: string): Promise<void> {
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    at('server.key'),
  ];
  await openssl('req', ...key, '-subj', `/CN=${host}`, '-out', at('server.csr'));
  await writeFile(at('server.ext'), `subjectAltName=DNS:${host}\n`);
  const authority = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial'];
  const files = ['-in', at('server.csr'), '-extfile', at('server.ext'), '-out', at('server.crt')];
  await openssl('x509', '-req', ...authority, ...files, '-days', '2');
}

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
