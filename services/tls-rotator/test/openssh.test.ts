import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, get } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Child, startChild } from '@colonnade/embedded/servers';
import { freePort } from '../../../test/support/free-port.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { connectOpenSsh } from '../src/nodes/openssh.ts';
import { isReady } from '../src/nodes/ready.ts';
import { connectSsh, type SshTarget } from '../src/nodes/ssh.ts';
import { parseKnownHosts } from '../src/rules/known-hosts.ts';
import { makeCa, runTool } from './pki.ts';

const SSHD = '/usr/sbin/sshd';
const HOST = '127.0.0.1';
const skip = process.getuid?.() !== 0 || !existsSync(SSHD) ? 'needs root and sshd' : false;

describe('a node that is known by the authority of its host certificate', { skip }, () => {
  let dir: TempDir;
  let sshd: Child | undefined;
  let port: number;
  let tmp: string;
  const tmpBefore = process.env.TMPDIR;
  const file = (name: string) => path.join(dir.path, name);
  const text = (name: string) => readFile(file(name), 'utf8');
  before(async () => {
    dir = await tempDir('openssh');
    tmp = file('tmp');
    await mkdir(tmp);
    process.env.TMPDIR = tmp;
    for (const name of ['host', 'authority', 'other', 'user'])
      runTool('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', file(name));
    await mkdir('/run/sshd', { recursive: true });
    port = await freePort();
    await certify();
  });
  after(async () => {
    await sshd?.stop();
    if (tmpBefore === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = tmpBefore;
    await dir?.[Symbol.asyncDispose]();
  });

  /** A new certificate of the host, and an sshd that shows it. */
  const certify = async (args: readonly string[] = ['-n', HOST], shows = true) => {
    runTool('ssh-keygen', '-q', '-s', file('authority'), '-h', '-I', 'node', ...args, file('host.pub'));
    const lines = [
      ...[`Port ${port}`, `ListenAddress ${HOST}`, `HostKey ${file('host')}`],
      ...(shows ? [`HostCertificate ${file('host-cert.pub')}`] : []),
      ...[`AuthorizedKeysFile ${file('user.pub')}`, 'StrictModes no', 'UsePAM no', 'PidFile none'],
      ...['PasswordAuthentication no', 'PermitRootLogin prohibit-password', 'AllowTcpForwarding local', ''],
    ];
    await writeFile(file('sshd_config'), lines.join('\n'));
    await sshd?.stop();
    const logFile = file('sshd.log');
    await writeFile(logFile, '');
    sshd = await startChild({ command: SSHD, args: ['-D', '-e', '-f', file('sshd_config')], logFile });
    await waitFor('sshd', async () => (await text('sshd.log')).includes('listening on'));
  };
  const authority = async (name = 'authority') => `@cert-authority [${HOST}]:* ${await text(`${name}.pub`)}`;
  const target = async (pins?: string, key?: string): Promise<SshTarget> => ({
    ...{ host: HOST, port, user: 'root', privateKey: key ?? (await text('user')) },
    knownHosts: parseKnownHosts(pins ?? (await authority())),
  });

  test('runs commands and reaches its own ports; key and pins are files only while it is connected', async () => {
    const server = createServer((_, response) => response.end('it is me')).listen(0, HOST);
    await once(server, 'listening');
    {
      await using ssh = await connectSsh(await target());
      assert.deepEqual(await readdir(path.join(tmp, (await readdir(tmp))[0] ?? '')), ['control']);
      const long = 'x'.repeat(300_000);
      const said = await ssh.run(
        `sh -c 'cat; echo "$1" >&2; exit 3' colonnade 'a '\\''b'\\'' c'`,
        long,
        5000,
      );
      assert.deepEqual(said, { code: 3, stdout: long, stderr: "a 'b' c\n" });
      const stream = await ssh.forward((server.address() as AddressInfo).port);
      const asked = get({ createConnection: () => stream as never, host: 'x', path: '/' });
      const [answer] = await once(asked, 'response');
      assert.equal(String(await answer.toArray()), 'it is me');
      await assert.rejects(ssh.run('sleep 60', '', 200), { code: 'unavailable', message: /within 200 ms/u });
      assert.equal(await waitFor('the end', () => !ssh.isOpen()), true);
    }
    assert.deepEqual(await readdir(tmp), []);
    server.close();
  });

  test('asks the API server of the node itself whether it is ready, and leaves no process behind', async () => {
    const cluster = makeCa(dir.path, 'cluster');
    const issued = cluster.issue('apiserver', { names: ['DNS:kubernetes.default.svc'] });
    const server = createTlsServer({ cert: issued.cert, key: issued.key }, (_, response) =>
      response.end('ok'),
    );
    await once(server.listen(0, HOST), 'listening');
    const { port: to } = server.address() as AddressInfo;
    await using ssh = await connectSsh(await target());
    const probe = {
      port: to,
      serverName: 'kubernetes.default.svc',
      ca: cluster.cert,
      authorization: undefined,
    };
    assert.equal(await isReady(ssh, probe), true);
    assert.equal(await isReady(ssh, { ...probe, serverName: 'elsewhere' }), false);
    assert.equal(await isReady(ssh, { ...probe, port: await freePort() }), false, 'nobody listens there');
    const streams = () =>
      runTool('ps', '--ppid', String(process.pid), '-o', 'args=').match(/ssh -F none .* -W /gu);
    await waitFor('the streams to end', () => streams() === null);
    server.close();
  });

  const refusals: readonly [string, readonly string[], boolean, () => Promise<string>, RegExp][] = [
    ['another authority', ['-n', HOST], true, () => authority('other'), /is refused/u],
    ['an expired one', ['-n', HOST, '-V', '20200101:20200102'], true, authority, /is refused: .*expired/u],
    ['one of another name', ['-n', 'elsewhere'], true, authority, /is refused: .*principal/u],
    ['none', ['-n', HOST], false, authority, /is refused: .*no matching host key type/u],
    [
      'a revoked key',
      ['-n', HOST],
      true,
      async () => `@revoked * ${await text('host.pub')}${await authority()}`,
      /is refused: .*revoked/iu,
    ],
    [
      'one of a revoked authority',
      ['-n', HOST],
      true,
      async () => `@revoked * ${await text('authority.pub')}${await authority()}`,
      /is refused: .*revoked/iu,
    ],
  ];
  for (const [what, args, shows, pins, message] of refusals) {
    test(`is not spoken to when it shows ${what}`, async () => {
      await certify(args, shows);
      await assert.rejects(connectSsh(await target(await pins())), { code: 'forbidden', message });
      assert.deepEqual(await readdir(tmp), []);
    });
  }

  test('says whose fault it is: the key, or the node that is away', async () => {
    await certify();
    const [other, none] = [
      await target(undefined, await text('other')),
      await target(undefined, 'not a key'),
    ];
    await assert.rejects(connectSsh(other), {
      code: 'unauthorized',
      message: /does not accept the key for root/u,
    });
    await assert.rejects(connectSsh(none), { code: 'unprocessable', message: /SSH key cannot be read/u });
    await assert.rejects(connectOpenSsh(await target(), 'no-such-program'), {
      code: 'forbidden',
      message: /there is no program ssh here/u,
    });
    await sshd?.stop();
    await assert.rejects(connectSsh(await target()), { code: 'unavailable', message: /cannot be reached/u });
    assert.deepEqual(await readdir(tmp), []);
  });

  const sessions = () =>
    runTool('ps', '-A', '-o', 'ppid=,pid=')
      .split('\n')
      .map((line) => line.trim().split(/ +/u).map(Number))
      .flatMap(([parent, pid = 0]) => (parent === sshd?.pid ? [pid] : []));

  test('a connection that drops is told, and left behind', async () => {
    await certify();
    await using ssh = await connectSsh(await target());
    const running = ssh.run('sleep 60', '', 30_000);
    await waitFor('the session', () => sessions().length > 0);
    for (const pid of sessions()) process.kill(pid, 'SIGKILL');
    await assert.rejects(running, { code: 'unavailable', message: /broke off/u });
    await waitFor('it to be known', () => !ssh.isOpen());
    await assert.rejects(ssh.run('true', '', 5000), { code: 'unavailable' });
  });

  test('the connection ends with whoever made it, also by SIGKILL', async () => {
    const [openssh, hosts] = ['nodes/openssh.ts', 'rules/known-hosts.ts'].map((name) =>
      JSON.stringify(path.join(import.meta.dirname, '../src', name)),
    );
    const { knownHosts: _, ...rest } = await target();
    const script = `import { connectOpenSsh } from ${openssh}; import { parseKnownHosts } from ${hosts};
      const [rest, pins] = process.argv.slice(1);
      await connectOpenSsh({ ...JSON.parse(rest), knownHosts: parseKnownHosts(pins) });
      console.log('connected'); setInterval(() => {}, 1000);`;
    const args = ['--input-type=module-typescript', '-e', script, JSON.stringify(rest), await authority()];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    assert.equal(sessions().length, 1);
    child.kill('SIGKILL');
    await waitFor('its end', () => sessions().length === 0);
  });
});
