import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connectBus, createUserNkey, renderProductionNatsConfig } from '@colonnade/bus';
import { BUS_USERS, type BusUser } from '@colonnade/contracts';
import { findNatsServer, type NatsServer, startNats } from '@colonnade/embedded/servers';
import { connect } from '@nats-io/transport-node';
import { type Certificate, makeAuthority } from '../support/certificates.ts';
import { natsForTests, skipWithout } from '../support/servers.ts';
import { type TempDir, tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const cli = new URL('../../packages/cli/src/main.ts', import.meta.url).pathname;
const creds = (dir: string, ...args: string[]) =>
  execFileSync(process.execPath, [cli, 'bus', 'creds', '--dir', dir, ...args]);

describe('the shipped configuration of NATS', { skip: await skipWithout('nats') }, () => {
  let dir: TempDir;
  let nats: NatsServer;
  const at = (name: string) => path.join(dir.path, name);
  const seedOf = async (user: BusUser) => (await readFile(at(`${user}.nk`), 'utf8')).trim();
  const install = async ({ certFile, keyFile }: Certificate, caFile: string) => {
    await copyFile(certFile, at('tls.crt'));
    await copyFile(keyFile, at('tls.key'));
    await copyFile(caFile, at('ca.crt'));
  };
  const connectAs = async (
    user: BusUser,
    nkeySeed: string,
    { servers = nats.url, caFile = at('ca.crt') } = {},
  ) => connectBus({ servers, user, nkeySeed, name: 'test', caFile, logger: silent });

  before(async () => {
    dir = await tempDir('nkeys');
    creds(dir.path);
    const ca = await makeAuthority(dir.path, 'first');
    await install(await ca.issue('nats'), ca.certFile);
    const configText = renderProductionNatsConfig()
      .replaceAll('/etc/colonnade/nats/', `${dir.path}/`)
      .replace(/store_dir: .*/u, '')
      .replace('max_file_store: 17179869184', 'max_file_store: 67108864');
    const { path: binary } = await findNatsServer({ report: () => {} });
    nats = await startNats({ binary, dir: dir.path, configText });
  });
  after(async () => {
    await nats?.[Symbol.asyncDispose]();
    await dir[Symbol.asyncDispose]();
  });

  test('lets every user in with the nkey that "bus creds" made', async () => {
    for (const user of BUS_USERS) {
      await using bus = await connectAs(user, await seedOf(user));
      assert.ok(bus.isConnected(), user);
    }
  });

  test('lets nobody in with another nkey, with a password, or without anything', async () => {
    await assert.rejects(connectAs('operator', createUserNkey().seed), { code: 'bus_unavailable' });
    const tls = { caFile: at('ca.crt') };
    await assert.rejects(connect({ servers: nats.url, tls, maxReconnectAttempts: 0 }));
    await assert.rejects(
      connect({ servers: nats.url, tls, user: 'operator', pass: 'operator', maxReconnectAttempts: 0 }),
    );
  });

  test('a server of another authority is not spoken to', async () => {
    const other = await makeAuthority(dir.path, 'other');
    await assert.rejects(connectAs('operator', await seedOf('operator'), { caFile: other.certFile }), {
      code: 'bus_unavailable',
      message: /certificate/u,
    });
  });

  test('a new certificate of a new authority is taken without a restart of the client', async () => {
    await using bus = await connectAs('hook-runner', await seedOf('hook-runner'));
    const ca = await makeAuthority(dir.path, 'second');
    await install(await ca.issue('nats'), ca.certFile);
    await nats.kill('SIGTERM');
    await waitFor('the loss of the connection', () => !bus.isConnected());
    await nats.restart();
    await waitFor('the connection to the new certificate', () => bus.isConnected());
    await assert.rejects(
      connectAs('operator', await seedOf('operator'), { caFile: at('first.crt') }),
      'the server kept its old certificate',
    );
  });

  test('a new nkey shuts the old one out once the server has read its configuration anew', async () => {
    const stolen = await seedOf('tls-rotator');
    creds(dir.path, 'tls-rotator', '--new');
    process.kill(nats.pid, 'SIGHUP');
    await waitFor('the old nkey to be refused', async () => {
      const bus = await connectAs('tls-rotator', stolen).catch(() => undefined);
      await bus?.[Symbol.asyncDispose]();
      return bus === undefined;
    });
    await using bus = await connectAs('tls-rotator', await seedOf('tls-rotator'));
    assert.ok(bus.isConnected());
  });
});

test('off this host nothing is said to a server without TLS', {
  skip: await skipWithout('nats'),
}, async () => {
  const { seed, publicKey } = createUserNkey();
  await using nats = await natsForTests({
    configText: `authorization { users: [{ nkey: ${publicKey} }] }`,
  });
  const options = { user: 'operator', nkeySeed: seed, name: 'test', logger: silent } as const;
  await using here = await connectBus({ ...options, servers: nats.url });
  assert.ok(here.isConnected());
  // The same server under an address that does not say it is this host.
  const elsewhere = nats.url.replace('127.0.0.1', '0.0.0.0');
  await assert.rejects(connectBus({ ...options, servers: elsewhere }), {
    code: 'bus_unavailable',
    message: /tls/iu,
  });
});
