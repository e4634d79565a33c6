import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { connectBus, createUserNkey, renderProductionNatsConfig } from '@colonnade/bus';
import { BUS_USERS, type BusUser } from '@colonnade/contracts';
import { findNatsServer, type NatsServer, startNats } from '@colonnade/embedded/servers';
import { connect, nkeyAuthenticator } from '@nats-io/transport-node';
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
  let binary: string;
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
    ({ path: binary } = await findNatsServer({ report: () => {} }));
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

  /** As `infra/README.md` has it done. */
  const reload = () => execFileSync(binary, ['--signal', `reload=${nats.pid}`]);
  const logged = async (text: RegExp) => (await readFile(nats.logFile, 'utf8')).match(text)?.length ?? 0;

  test('a new certificate is taken at a reload: who is connected stays so, and who comes next is shown it', async () => {
    const ca = at('ca.crt');
    const old = path.join(dir.path, 'before.crt');
    await copyFile(ca, old);
    const shown = await certificateOf(nats);
    // One that would not come again: a lost connection is the end of it.
    const stays = await connect({
      ...{ servers: nats.url, tls: { caFile: ca }, reconnect: false },
      authenticator: nkeyAuthenticator(Buffer.from(await seedOf('operator'))),
    });
    await using service = await connectAs('hook-runner', await seedOf('hook-runner'));
    const clientId = stays.info?.client_id;
    const next = await makeAuthority(dir.path, 'third');
    await install(await next.issue('nats'), next.certFile);
    assert.equal(await certificateOf(nats), shown, 'nobody has said that there is another one');
    reload();
    await waitFor('the new certificate', async () => (await certificateOf(nats)) !== shown);
    await stays.flush();
    assert.deepEqual(
      [stays.isClosed(), stays.info?.client_id, service.isConnected()],
      [false, clientId, true],
    );
    await using fresh = await connectAs('operator', await seedOf('operator'));
    assert.ok(fresh.isConnected());
    await assert.rejects(connectAs('operator', await seedOf('operator'), { caFile: old }), {
      code: 'bus_unavailable',
      message: /certificate/u,
    });
    await stays.close();
  });

  test('a file that is no certificate changes nothing at a reload, and the server says so', async () => {
    const shown = await certificateOf(nats);
    const kept = await readFile(at('tls.crt'));
    const failed = /Failed to reload/gu;
    const before = await logged(failed);
    await writeFile(at('tls.crt'), 'half a certif');
    reload();
    await waitFor('the refusal in the log', async () => (await logged(failed)) > before);
    assert.equal(await certificateOf(nats), shown);
    await using bus = await connectAs('operator', await seedOf('operator'));
    assert.ok(bus.isConnected());
    await writeFile(at('tls.crt'), kept);
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

/** The certificate that a server shows to who connects now: it greets in the clear, and TLS begins after that. */
async function certificateOf({ port }: NatsServer): Promise<string> {
  const socket = connectTcp(port, '127.0.0.1');
  await once(socket, 'data');
  const secured = connectTls({ socket, rejectUnauthorized: false });
  await once(secured, 'secureConnect');
  const { fingerprint256 } = secured.getPeerCertificate();
  secured.destroy();
  return fingerprint256;
}

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
