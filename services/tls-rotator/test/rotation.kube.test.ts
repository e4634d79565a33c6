import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { type Rotator, startRotator } from './support.ts';

const LIMIT = { limitMs: 240_000, everyMs: 200 };

describe('a control plane of three API servers', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let plane: ControlPlane;
  let rotator: Rotator;
  before(async () => {
    plane = await startControlPlane();
    rotator = await startRotator(plane.kubeconfig, plane.env);
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const nodes = () => plane.plane.nodes;
  const until = (type: string, expected: string) =>
    waitFor(
      `${type} ${expected}`,
      async () => {
        const is = await plane.cluster.condition('common', type);
        if (is !== expected)
          throw new Error(`${is}: ${JSON.stringify(await plane.cluster.status('common'))}`);
        return true;
      },
      LIMIT,
    );
  const allTakeFreshTokens = async () => {
    for (const node of nodes())
      await waitFor(`${node.name} to take a token with a new key`, () => plane.takesFreshToken(node), {
        limitMs: 60_000,
        everyMs: 500,
      });
  };
  const processesOf = async () =>
    Promise.all(
      nodes().map((node) => node.exec('pgrep', '-x', 'kube-apiserver').then((text) => text.trim())),
    );

  test('that trusts the source already is left alone', async () => {
    await allTakeFreshTokens();
    const before = await processesOf();
    await plane.cluster.apply('common', plane.spec());
    await until('Ready', 'True Rotated');
    assert.deepEqual(await processesOf(), before);
    for (const node of nodes()) assert.equal(await plane.caOn(node), plane.first['ca.crt']);
  });

  test('gets a new CA one node at a time, never with fewer than two that answer, and Secrets only afterwards', async () => {
    const next = plane.newMaterial('second');
    const before = await processesOf();
    let down: Set<string> = new Set();
    let most = 0;
    let secretsBeforeNodes = false;
    let over = false;
    const watching = (async () => {
      while (!over) {
        const answers = await Promise.all(
          nodes().map(async (node) => ({ node, ready: await plane.isReady(node) })),
        );
        down = new Set(answers.filter(({ ready }) => !ready).map(({ node }) => node.name));
        most = Math.max(most, down.size);
        const [served, cas] = await Promise.all([
          plane.cluster.textsOf('dex').catch(() => undefined),
          Promise.all(nodes().map((node) => plane.caOn(node))),
        ]);
        const trusting = cas.every((ca) => ca.includes(next['ca.crt'].trim()));
        if (served?.['tls.crt'] === next['tls.crt'] && !trusting) secretsBeforeNodes = true;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    await plane.cluster.setSecret('ingress', next);
    await waitFor(
      'the Secret',
      async () => (await plane.cluster.textsOf('dex'))?.['tls.crt'] === next['tls.crt'],
      LIMIT,
    );
    await until('Ready', 'True Rotated');
    over = true;
    await watching;
    assert.equal(most, 1, 'one at a time, and every one of them');
    assert.equal(secretsBeforeNodes, false);
    const cas = await Promise.all(nodes().map((node) => plane.caOn(node)));
    for (const ca of cas) assert.equal(ca, `${next['ca.crt'].trim()}\n${plane.first['ca.crt'].trim()}\n`);
    const now = await processesOf();
    assert.ok(
      now.every((pid, i) => pid !== before[i]),
      'every API server is another process',
    );
    await allTakeFreshTokens();
    const status = await plane.cluster.status('common');
    assert.deepEqual(
      status.nodes?.map(({ phase }) => phase),
      ['Done', 'Done', 'Done'],
    );
    assert.ok(status.nodes?.every((n) => n.startedAt !== undefined && n.finishedAt !== undefined));
    assert.ok(status.trust?.dropOldAt);
    const first = nodes()[0];
    assert.equal(
      ((await stat(first?.file('etc/kubernetes/pki/ingress-ca.crt') ?? '')).mode & 0o777).toString(8),
      '644',
    );
  });

  test('drops the old CA in a later pass, and still takes tokens', async () => {
    const pem = await plane.caOn(nodes()[0] as never);
    await plane.cluster.change('common', { apiServerOIDC: { dropOldCAAfterSeconds: 0 } });
    await waitFor(
      'the old CA to go',
      async () => {
        const cas = await Promise.all(nodes().map((node) => plane.caOn(node)));
        return cas.every((ca) => ca.split('BEGIN').length === 2 && pem.startsWith(ca));
      },
      LIMIT,
    );
    await until('Ready', 'True Rotated');
    await allTakeFreshTokens();
    assert.equal((await plane.cluster.status('common')).trust?.dropOldAt, undefined);
  });

  test('leaves nothing behind on a node but the copy of what was there before', async () => {
    for (const node of nodes()) {
      const left = (await node.exec('ls', '/etc/kubernetes/colonnade-tls')).trim().split('\n');
      assert.deepEqual(left, ['deadline', 'next-ca', 'previous-ca', 'restore.sh']);
      assert.equal((await node.exec('ls', '-A', '/etc/cron.d')).trim(), '');
      assert.equal((await node.exec('ls', '-A', '/etc/kubernetes/manifests')).trim(), 'kube-apiserver.yaml');
    }
  });
});
