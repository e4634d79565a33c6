import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { type Kube, startKube } from '../../../test/support/kube.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createKubeClient, type KubeClient } from '../src/kube/client.ts';
import { type Reflector, startReflector } from '../src/kube/reflector.ts';
import { createCluster, must, writeKubeconfig } from './support.ts';

/** A way to the API server that can fall silent: connections stay open, and nothing comes through any more. */
async function startSilentWay(target: number): Promise<AsyncDisposable & { port: number; silence(): void }> {
  const pairs = new Set<[Socket, Socket]>();
  const server: Server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.pipe(far).pipe(near);
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => pairs.delete(pair));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      for (const [near, far] of pairs) {
        near.unpipe(far);
        far.unpipe(near);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const sockets of pairs) for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

type OpenOptions = {
  path?: string;
  relistMs?: number;
  silenceMs?: number;
  wrap?: (real: KubeClient) => KubeClient;
};

describe('a copy of objects', { skip: skipWithoutKube() }, () => {
  let dir: TempDir;
  let kube: Kube;
  let client: KubeClient;
  let seen: string[];
  const watcher = {
    relisted: () => void seen.push('listed'),
    watchSilent: () => void seen.push('silent'),
    watchFailed: (_path: string, { code }: { code: string }) => void seen.push(code),
  };
  before(async () => {
    dir = await tempDir('watches');
    kube = await startKube();
  });
  after(async () => {
    await kube?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  const open = async (url: string, { wrap = (real) => real, ...options }: OpenOptions = {}) => {
    seen = [];
    const file = await writeKubeconfig(dir.path, { url, ca: kube.ca, token: 'admin-token' });
    client = createKubeClient(file);
    return startReflector<string>(wrap(client), {
      path: '/api/v1/namespaces',
      keep: ({ metadata }) => metadata.resourceVersion,
      onChange: () => {},
      relistMs: 600_000,
      silenceMs: 60_000,
      watcher,
      ...options,
    });
  };
  const untilHas = (reflector: Reflector<string>, key: string) =>
    waitFor(key, () => reflector.get(key) !== undefined, { limitMs: 20_000 });
  const cluster = () => createCluster(kube.call);

  test('lists, follows and forgets', async () => {
    await using reflector = await open(kube.url);
    await reflector.synced;
    assert.ok(reflector.get('default'));
    await cluster().namespace('first');
    await untilHas(reflector, 'first');
    assert.deepEqual(seen, ['listed']);
    client[Symbol.dispose]();
  });

  test('notices a watch that dies silently, and has what happened meanwhile', async () => {
    await using way = await startSilentWay(Number(new URL(kube.url).port));
    await using reflector = await open(`https://127.0.0.1:${way.port}`, { silenceMs: 1500 });
    await reflector.synced;
    way.silence();
    await cluster().namespace('meanwhile');
    await untilHas(reflector, 'meanwhile');
    assert.ok(seen.includes('silent'), seen.join());
    client[Symbol.dispose]();
  });

  test('lists anew when its time has come', async () => {
    await using reflector = await open(kube.url, { relistMs: 300 });
    await reflector.synced;
    await waitFor('more lists', () => seen.filter((s) => s === 'listed').length >= 3);
    client[Symbol.dispose]();
  });

  /**
   * Watches a path over and over until it is there. Whether its storage is still being made ready when we ask is a matter
   * of milliseconds.
   * @returns the 429, if there was one
   */
  const refusalAt = async (path: string): Promise<unknown> => {
    for (;;) {
      const signal = AbortSignal.timeout(100);
      const thrown = await client.watch(path, { resourceVersion: '1' }, () => {}, signal).catch((e) => e);
      if (thrown?.code === 'rate_limited') return thrown;
      if (thrown?.code !== 'not_found') return undefined;
    }
  };
  const makeCrd = (group: string) =>
    must(kube.call, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `late.${group}` },
      spec: {
        group,
        scope: 'Cluster',
        names: { kind: 'Late', plural: 'late' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    });

  test('waits out the 429 just after a CRD is made', async () => {
    let refusal: unknown;
    let path = '';
    client = createKubeClient(
      await writeKubeconfig(dir.path, { url: kube.url, ca: kube.ca, token: 'admin-token' }),
    );
    for (let tries = 0; tries < 30 && refusal === undefined; tries += 1) {
      const group = `colonnade${tries}.test`;
      path = `/apis/${group}/v1/late`;
      const asked = Array.from({ length: 8 }, () => refusalAt(path));
      await makeCrd(group);
      refusal = (await Promise.all(asked)).find((one) => one !== undefined);
    }
    assert.ok(refusal, 'the API server has said 429 to none of them');
    client[Symbol.dispose]();
    const told = [refusal];
    // What it said to a watch a moment ago is what the first watch of the copy is told.
    const wrap = (real: KubeClient): KubeClient => ({
      ...real,
      watch: (...asked) => (told.length > 0 ? Promise.reject(told.pop()) : real.watch(...asked)),
    });
    await using reflector = await open(kube.url, { path, wrap });
    await waitFor('the second list', () => seen.filter((s) => s === 'listed').length === 2);
    const apiVersion = path.split('/').slice(2, 4).join('/');
    await must(kube.call, 'POST', path, { apiVersion, kind: 'Late', metadata: { name: 'one' } });
    await untilHas(reflector, 'one');
    assert.deepEqual(seen, ['listed', 'rate_limited', 'listed']);
    client[Symbol.dispose]();
  });

  test('a version that is gone is a 410, and leads to a new list', async () => {
    await using reflector = await open(kube.url);
    await reflector.synced;
    const [, version = ''] = [...reflector.entries()].find(([name]) => name === 'default') ?? [];
    await cluster().namespace('before');
    await kube.restartApiserver();
    await cluster().namespace('afterwards');
    const lines: string[] = [];
    const note = (line: string) => void lines.push(line);
    const query = { resourceVersion: version };
    await client
      .watch('/api/v1/namespaces', query, note, AbortSignal.timeout(3000))
      .catch(({ code }: { code: string }) => note(code));
    assert.match(lines.join(), /"code":410|expired/u);
    for (const name of ['before', 'afterwards']) await untilHas(reflector, name);
    client[Symbol.dispose]();
  });

  test('a copy that is told 410 lists anew at once, and goes on from there', async () => {
    await using first = await open(kube.url);
    await first.synced;
    const real = client;
    let old = true;
    const answers: string[] = [];
    // As a watch that was resumed too late: the API server itself says that the version is gone.
    client = {
      ...real,
      watch: (path, query, onLine, signal) => {
        const resourceVersion = old ? '1' : (query.resourceVersion ?? '');
        old = false;
        const note = (line: string) => {
          answers.push(line);
          onLine(line);
        };
        return real.watch(path, { ...query, resourceVersion }, note, signal);
      },
    };
    seen = [];
    await using reflector = startReflector<string>(client, {
      path: '/api/v1/namespaces',
      keep: ({ metadata }) => metadata.resourceVersion,
      onChange: () => {},
      relistMs: 600_000,
      silenceMs: 60_000,
      watcher,
    });
    await waitFor('the second list', () => seen.filter((s) => s === 'listed').length === 2);
    assert.match(answers.join(), /"code":410|Expired/u);
    await cluster().namespace('after-gone');
    await untilHas(reflector, 'after-gone');
    assert.deepEqual(seen, ['listed', 'listed']);
    real[Symbol.dispose]();
  });
});
