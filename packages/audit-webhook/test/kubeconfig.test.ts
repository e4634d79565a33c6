import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { type Certificate, makeAuthority } from '../../../test/support/certificates.ts';
import { writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { readKubeconfig } from '../src/kubeconfig.ts';
import { createPoster } from '../src/post.ts';
import { createReloadingPoster } from '../src/reloading-poster.ts';

describe('a kubeconfig file', () => {
  let dir: TempDir;
  let authority: Awaited<ReturnType<typeof makeAuthority>>;
  let client: Certificate;
  let url: string;
  let close: () => Promise<unknown>;
  const seen: { authorization: string | undefined; name: string | undefined; servername: unknown }[] = [];

  before(async () => {
    dir = await tempDir('kubeconfig');
    authority = await makeAuthority(dir.path, 'ca');
    const served = await authority.issue('webhook');
    client = await authority.issue('sender');
    const tls = {
      cert: await readFile(served.certFile),
      key: await readFile(served.keyFile),
      ca: await readFile(authority.certFile),
      requestCert: true,
      rejectUnauthorized: false,
    };
    const server = createServer(tls, (request, response) => {
      const socket = request.socket as TLSSocket & { servername?: string };
      const name = socket.authorized ? String(socket.getPeerCertificate().subject.CN) : undefined;
      seen.push({ authorization: request.headers.authorization, name, servername: socket.servername });
      response.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    close = () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    };
  });
  after(async () => {
    await close();
    await dir[Symbol.asyncDispose]();
  });

  const post = async (file: string) => {
    using poster = createPoster(readKubeconfig(file));
    const { status } = await poster.post(Buffer.from('{}'), 5000);
    assert.equal(status, 200);
    return seen.at(-1);
  };
  const withCa = () => ({ server: url, 'certificate-authority': authority.certFile });

  test('gives the CA as a file, relative to it, or as data', async () => {
    await post(await writeKubeconfig(dir.path, withCa()));
    await post(await writeKubeconfig(dir.path, { server: url, 'certificate-authority': 'ca.crt' }));
    const data = (await readFile(authority.certFile)).toString('base64');
    await post(await writeKubeconfig(dir.path, { server: url, 'certificate-authority-data': data }));
    await post(await writeKubeconfig(dir.path, { server: url, 'insecure-skip-tls-verify': true }));
  });

  test('without the CA the webhook is not trusted', async () => {
    await assert.rejects(post(await writeKubeconfig(dir.path, { server: url })), { code: 'unavailable' });
  });

  test('another name than that of the certificate is not trusted; the name asked for is sent', async () => {
    const sent = await post(await writeKubeconfig(dir.path, { ...withCa(), 'tls-server-name': 'localhost' }));
    assert.equal(sent?.servername, 'localhost');
    const wrong = await writeKubeconfig(dir.path, { ...withCa(), 'tls-server-name': 'elsewhere.example' });
    await assert.rejects(post(wrong), { code: 'unavailable' });
  });

  test('client certificates, tokens, token files and passwords', async () => {
    const { certFile, keyFile } = client;
    const certificate = { 'client-certificate': certFile, 'client-key': keyFile };
    assert.equal((await post(await writeKubeconfig(dir.path, withCa(), certificate)))?.name, 'sender');
    assert.equal(
      (await post(await writeKubeconfig(dir.path, withCa(), { token: 'abc' })))?.authorization,
      'Bearer abc',
    );
    const basic = await post(await writeKubeconfig(dir.path, withCa(), { username: 'u', password: 'p' }));
    assert.equal(basic?.authorization, `Basic ${Buffer.from('u:p').toString('base64')}`);
    await writeFile(path.join(dir.path, 'token'), 'first\n');
    const file = await writeKubeconfig(dir.path, withCa(), { tokenFile: 'token', token: 'beside' });
    assert.equal((await post(file))?.authorization, 'Bearer first');
    await writeFile(path.join(dir.path, 'token'), 'second\n');
    assert.equal((await post(file))?.authorization, 'Bearer second');
  });

  test('files that are replaced are read again; a broken one changes nothing', async () => {
    const file = await writeKubeconfig(dir.path, withCa(), { token: 'old' });
    const faults: unknown[] = [];
    using poster = createReloadingPoster(file, (fault) => faults.push(fault));
    const tokenNow = async () => {
      await poster.post(Buffer.from('{}'));
      return seen.at(-1)?.authorization;
    };
    assert.equal(await tokenNow(), 'Bearer old');
    await writeFile(file, (await readFile(file, 'utf8')).replace('old', 'new'));
    poster.reload();
    assert.equal(await tokenNow(), 'Bearer new');
    await writeFile(file, 'clusters: [');
    poster.reload();
    assert.equal(await tokenNow(), 'Bearer new');
    assert.equal(faults.length, 1);
  });

  test('what cannot be used is refused, and named', async () => {
    const text = async (cluster: object, user: object = {}) =>
      readFile(await writeKubeconfig(dir.path, cluster, user), 'utf8');
    const good = await text(withCa());
    const bad: [string, RegExp][] = [
      ['', /the document/u],
      ['kind: Config', /contexts/u],
      ['a: [', /not a readable/u],
      [good.replace('current-context', 'other'), /current-context is missing/u],
      [good.replace('name: main', 'name: gone'), /names no context/u],
      [good.replace('name: sink', 'name: gone'), /names no cluster/u],
      [good.replace('name: sender', 'name: gone'), /names no user/u],
      [await text({ server: 'ftp://x' }), /http/u],
      [await text({ server: 'nowhere' }), /not a URL/u],
      [
        await text({ server: url, 'certificate-authority': 'absent' }),
        /certificate-authority names absent, which cannot be read/u,
      ],
      [await text(withCa(), { 'client-certificate': 'ca.crt' }), /needs its key/u],
      [await text(withCa(), { exec: { command: 'x' } }), /plugins are not supported/u],
      [await text({ ...withCa(), 'proxy-url': 'http://x' }), /proxies are not supported/u],
    ];
    await mkdir(path.join(dir.path, 'bad'));
    for (const [content, message] of bad) {
      const file = path.join(dir.path, 'kubeconfig');
      await writeFile(file, content);
      assert.throws(
        () => readKubeconfig(file),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, 'misconfigured', error.message);
          assert.match(error.message, message);
          return true;
        },
      );
      await rm(file);
    }
    assert.throws(() => readKubeconfig(path.join(dir.path, 'absent')), { code: 'misconfigured' });
  });
});
