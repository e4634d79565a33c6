import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { type Kube, startKube } from '../../../test/support/kube.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createKubeClient, type KubeClient, MERGE_PATCH } from '../src/kube/client.ts';
import { type Secret, secretPath } from '../src/kube/objects.ts';
import { viewOf } from '../src/secrets/target.ts';
import { writeTarget } from '../src/secrets/write-target.ts';
import { makeCa } from './pki.ts';
import {
  applyManifests,
  type Cluster,
  createCluster,
  type Rotator,
  restrictedKubeconfig,
  startRotator,
  writeKubeconfig,
} from './support.ts';

const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    resources: [{group: coordination.k8s.io, resources: [leases]}]
  - level: Metadata
`;
const NAMESPACES = 40;
const RESYNCS = 100;
const LIMIT = { limitMs: 180_000, everyMs: 100 };
const ROTATOR = 'system:serviceaccount:colonnade:tls-rotator';

type AuditLine = {
  verb: string;
  user: { username?: string };
  requestURI: string;
  responseStatus?: { code?: number };
};

describe('a rotator on a real API server that writes down what it is asked', {
  skip: skipWithoutKube(),
}, () => {
  let dir: TempDir;
  let kube: Kube;
  let cluster: Cluster;
  before(async () => {
    dir = await tempDir('resync');
    kube = await startKube({ auditPolicy: POLICY });
    await applyManifests(kube.call);
    cluster = createCluster(kube.call);
    await cluster.namespace('ingress');
  });
  after(async () => {
    await kube?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  const audited = async (): Promise<AuditLine[]> => {
    const lines = (await readFile(kube.auditLog, 'utf8')).trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as AuditLine).filter(({ user }) => user.username === ROTATOR);
  };
  const isWrite = ({ verb }: AuditLine) => !['get', 'list', 'watch'].includes(verb);
  const metric = async ({ service }: Rotator, start: string) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const line = text.split('\n').find((l) => l.startsWith(start));
    return Number(line?.split(' ').at(-1) ?? '0');
  };
  const heapMb = () => {
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    return process.memoryUsage().heapUsed / 1e6;
  };

  test('resyncs with nothing to change write nothing at all, and a hundred of them need no more memory', async () => {
    const ca = makeCa(dir.path, 'ca');
    const leaf = ca.issue('ingress');
    const texts = { 'tls.crt': leaf.cert, 'tls.key': leaf.key };
    await cluster.secret('ingress', { ...texts, 'ca.crt': ca.cert });
    for (let i = 0; i < NAMESPACES; i += 1) await cluster.namespace(`n${i}`);
    await using rotator = await startRotator(await restrictedKubeconfig(kube, dir.path), {
      RESYNC_MS: '100',
    });
    await cluster.apply('common', {
      sourceSecretRef: { namespace: 'ingress', name: 'ingress-tls' },
      namespaces: ['*'],
      createIfMissing: true,
    });
    const passes = () => metric(rotator, 'colonnade_tls_passes_total{outcome="ok"');
    const after = async (count: number) => {
      const from = await passes();
      await waitFor(`${count} passes`, async () => (await passes()) >= from + count, LIMIT);
    };
    await waitFor(
      'it to be ready',
      async () => (await cluster.condition('common', 'Ready')) === 'True Rotated',
      LIMIT,
    );
    // The counts of the pass that wrote are told once more, as unchanged.
    await after(20);
    const before = { lines: await audited(), heap: heapMb() };
    assert.ok(before.lines.some(isWrite), 'the log shows what is written');
    await after(RESYNCS);
    const growth = heapMb() - before.heap;
    const since = (await audited()).slice(before.lines.length);
    assert.ok(
      since.some(({ verb }) => verb === 'list'),
      'everything was listed meanwhile',
    );
    assert.deepEqual(
      since.filter(isWrite).map(({ verb, requestURI }) => `${verb} ${requestURI}`),
      [],
    );
    assert.ok(growth < 8, `${growth.toFixed(1)} MB more`);
  });

  describe('writing a Secret that somebody else writes too', () => {
    let client: KubeClient;
    const data = {
      'tls.crt': Buffer.from('ours').toString('base64'),
      'tls.key': Buffer.from('k').toString('base64'),
    };
    const path = secretPath('busy', 'ingress-tls');
    before(async () => {
      client = createKubeClient(
        await writeKubeconfig(dir.path, { url: kube.url, ca: kube.ca, token: 'admin-token' }),
      );
      await cluster.namespace('busy');
      await cluster.secret('busy', { 'tls.crt': 'old', 'tls.key': 'old' });
    });
    after(() => client?.[Symbol.dispose]());

    /** Before each write of ours another writer is faster, so many times. */
    const raced = (times: number) => {
      const found = { races: 0, conflicts: 0 };
      const busy: KubeClient = {
        ...client,
        async request<T>(...[method, where, how]: Parameters<KubeClient['request']>): Promise<T> {
          if (method === 'PATCH' && found.races < times) {
            found.races += 1;
            const body = { data: { theirs: Buffer.from(`${found.races}`).toString('base64') } };
            await client.request('PATCH', path, { body, type: MERGE_PATCH });
          }
          return client.request<T>(method, where, how).catch((thrown: { code?: string }) => {
            if (thrown.code === 'conflict') found.conflicts += 1;
            throw thrown;
          });
        },
      };
      return { busy, found };
    };
    const write = async (busy: KubeClient) => {
      const seen = viewOf(await client.request<Secret>('GET', path));
      const job = {
        namespace: 'busy',
        secretName: 'ingress-tls',
        data,
        seen,
        createIfMissing: false,
        owner: 'me',
      };
      return writeTarget(busy, job);
    };

    test('ends with both writes, after a 409 for each race', async () => {
      const { busy, found } = raced(2);
      assert.equal((await write(busy)).outcome, 'updated');
      assert.deepEqual(found, { races: 2, conflicts: 2 });
      assert.deepEqual(await cluster.textsOf('busy'), { 'tls.crt': 'ours', 'tls.key': 'k', theirs: '2' });
    });

    test('gives up against one that is always faster, and says so', async () => {
      await cluster.setSecret('busy', { 'tls.crt': 'old' });
      const { busy, found } = raced(Number.POSITIVE_INFINITY);
      const result = await write(busy);
      assert.equal(result.outcome, 'failed');
      assert.match(result.outcome === 'failed' ? result.reason : '', /409/u);
      assert.equal(found.conflicts, 4);
      assert.equal((await cluster.textsOf('busy'))?.['tls.crt'], 'old');
    });
  });
});
