import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import { createApiClient } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { startKube } from '../../../test/support/kube.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { plain, sendPlain, startWorld } from './support.ts';

/** The TLS proxy that stands in front of pillar-api; kube-apiserver reads keys over https only. */
async function startFront(
  port: number,
  files: { certFile: string; keyFile: string },
  target: () => string,
): Promise<AsyncDisposable> {
  const [cert, key] = await Promise.all([readFile(files.certFile), readFile(files.keyFile)]);
  const server: Server = createServer({ cert, key }, (request, response) => {
    void fetch(new URL(request.url ?? '/', target())).then(
      async (answer) =>
        void response
          .writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
          .end(await answer.text()),
      () => void response.writeHead(502).end(),
    );
  });
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

test('a real kube-apiserver takes an ES256 identity, by discovery alone, and no other', {
  skip: skipWithoutKube(),
}, async () => {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(await tempDir('identity-kube')).path;
  const authority = await makeAuthority(dir, 'front-ca');
  const port = await freePort();
  const issuer = `https://127.0.0.1:${port}`;
  const world = stack.use(
    await startWorld({
      kmsEnv: { KMS_IDENTITY_ISSUER: issuer, KMS_IDENTITY_AUDIENCES: 'kubernetes,elsewhere' },
    }),
  );
  stack.use(await startFront(port, await authority.issue('front'), () => world.api.url));
  const configuration = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    jwt: [
      {
        issuer: {
          ...{ url: issuer, audiences: ['kubernetes'] },
          certificateAuthority: await readFile(authority.certFile, 'utf8'),
        },
        claimMappings: {
          username: { claim: 'sub', prefix: 'colonnade:' },
          groups: { expression: '["colonnade:" + claims.colonnade.kind + "s"]' },
        },
      },
    ],
  };
  const file = path.join(dir, 'authentication.json');
  await writeFile(file, JSON.stringify(configuration));
  const kube = stack.use(await startKube({ flags: [`--authentication-config=${file}`] }));

  await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
  const fresh = { 'if-none-match': '*' };
  await sendPlain(world.admin, 'PUT', '/masters/m1/minions/web-1', { collections: [] }, fresh);
  await sendPlain(world.admin, 'POST', '/tasks/templates', { id: 'deploy', name: 'deploy', schema: {} });
  const minions = [{ master: 'm1', minion_id: 'web-1' }];
  const made = plain(
    await sendPlain(world.admin, 'POST', '/tasks', { tpl_id: 'deploy', minions, pillars: [] }),
  );
  const own = String((made.identity as { token: string }).token);
  const renew = async (audience: string, algorithm: string) => {
    const client = createApiClient(world.api.url, own);
    return String(plain(await sendPlain(client, 'POST', '/identity/renew', { audience, algorithm })).token);
  };
  const review = async (token: string) => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } as never;
    const where = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const { status, value } = await kube.call('POST', where, { body, token });
    return {
      status,
      value: toPlain(value) as { status?: { userInfo: { username: string; groups: string[] } } },
    };
  };

  const token = await renew('kubernetes', 'ES256');
  // It reads the keys in the background, some time after it is ready.
  await waitFor('the API server to have the keys', async () => (await review(token)).status === 201, {
    limitMs: 60_000,
    everyMs: 200,
  });
  const { userInfo } = (await review(token)).value.status ?? assert.fail();
  assert.equal(userInfo.username, `colonnade:task:${made.id}`);
  assert.ok(userInfo.groups.includes('colonnade:tasks'), String(userInfo.groups));
  const [header, payload, signature = ''] = token.split('.');
  const bad = [
    // It takes no EdDSA: that is what ES256 is there for.
    await renew('kubernetes', 'EdDSA'),
    await renew('elsewhere', 'ES256'),
    own,
    `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
  ];
  for (const one of bad) assert.equal((await review(one)).status, 401);
});
