import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import type { TestNode } from '../../../test/support/kube-nodes/nodes.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { CONFIG_PATH, type ControlPlane, startControlPlane } from './control-plane.ts';
import { type Rotator, startRotator } from './support.ts';

const LIMIT = { limitMs: 200_000, everyMs: 200 };
const METRICS_ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/colonnade-tls-rotator-reload';

describe('API servers that read their authentication configuration anew', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let plane: ControlPlane;
  let rotator: Rotator;
  let one: TestNode;
  let two: TestNode;
  before(async () => {
    plane = await startControlPlane({ count: 2, reload: true });
    [one, two] = plane.plane.nodes as [TestNode, TestNode];
    rotator = await startRotator(plane.kubeconfig, plane.env);
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const reload = (more = {}) => ({
    reload: { enabled: true, configPath: CONFIG_PATH, issuerURL: plane.issuer.url, ...more },
  });
  const until = (type: string, expected: string, message = /^/u) =>
    waitFor(
      `${type} ${expected} ${message}`,
      async () => {
        const is = await plane.cluster.condition('common', type);
        const { conditions, ...rest } = await plane.cluster.status('common');
        const found = conditions.find((c) => c.type === type);
        if (is === expected && message.test(found?.message ?? '')) return true;
        throw new Error(`${is}: ${JSON.stringify({ found, rest })}`);
      },
      LIMIT,
    );
  const nodes = () => [one, two];
  const configOn = (node: TestNode) => readFile(node.file(CONFIG_PATH), 'utf8');
  const pids = () => Promise.all(nodes().map((node) => node.exec('pgrep', '-x', 'kube-apiserver')));
  const allTakeFreshTokens = async () => {
    for (const node of nodes())
      await waitFor(`${node.name} to take a token with a new key`, () => plane.takesFreshToken(node), {
        limitMs: 60_000,
        everyMs: 500,
      });
  };
  /** What the API server of a node says it runs with, asked past the rotator. */
  const loadedOn = async (node: TestNode) => {
    const text = String(await plane.ask(node, '/metrics'));
    return /authentication_config_controller_last_config_info\{.*hash="sha256:([0-9a-f]{64})"\} 1/u.exec(
      text,
    )?.[1];
  };

  test('are given the new CA beside the old one in their file, and no process is another one', async () => {
    await allTakeFreshTokens();
    const before = await pids();
    await plane.cluster.apply('common', plane.spec(reload()));
    await until('Ready', 'True Rotated');
    const next = plane.newMaterial('second');
    await plane.cluster.setSecret('ingress', next);
    await waitFor(
      'the Secret',
      async () => (await plane.cluster.textsOf('dex'))?.['tls.crt'] === next['tls.crt'],
      LIMIT,
    );
    await until('Ready', 'True Rotated');
    for (const node of nodes()) {
      const text = await configOn(node);
      assert.match(text, /^# as an installer has left it\n/u);
      for (const ca of [next['ca.crt'], plane.first['ca.crt']])
        for (const line of ca.trim().split('\n')) assert.ok(text.includes(line), node.name);
      assert.equal(await loadedOn(node), createHash('sha256').update(text).digest('hex'));
    }
    await allTakeFreshTokens();
    assert.deepEqual(await pids(), before);
    const steps = rotator.log().filter(({ msg }) => msg === 'node step');
    assert.deepEqual(
      steps.map(({ node, step }) => `${node} ${step}`),
      ['node-1', 'node-2'].flatMap((node) => ['begin', 'write', 'finish'].map((step) => `${node} ${step}`)),
    );
  });

  test('that refuse the file get the old one back, and no other is touched', async () => {
    const [before, other, running] = await Promise.all([configOn(one), configOn(two), pids()]);
    await plane.cluster.change('common', { apiServerOIDC: reload({ timeoutSeconds: 5 }) });
    await until('Ready', 'True Rotated');
    const served = await plane.cluster.textsOf('dex');
    await plane.cluster.setSecret('ingress', plane.newMaterial('refused by Go', '-5'));
    await until('Degraded', 'True RolloutStopped', /^node-1: reload: .*it refused this one/u);
    assert.equal(await configOn(one), before);
    assert.equal(await loadedOn(one), createHash('sha256').update(before).digest('hex'));
    assert.equal(await configOn(two), other);
    assert.deepEqual(await pids(), running);
    assert.deepEqual(await plane.cluster.textsOf('dex'), served);
    const { nodes: rows } = await plane.cluster.status('common');
    assert.deepEqual(
      rows?.map(({ phase }) => phase),
      ['RolledBack', 'Done'],
    );
    // In this order: another spec alone would try the refused one again, for as long as it now may.
    await plane.cluster.setSecret('ingress', plane.newMaterial('after that'));
    await plane.cluster.change('common', { apiServerOIDC: reload({ timeoutSeconds: 180 }) });
    await until('Ready', 'True Rotated');
    assert.deepEqual(await pids(), running);
  });

  test('and wait for one that they will never read take the next source at once, with nothing rolled back', async () => {
    const running = await pids();
    await plane.cluster.setSecret('ingress', plane.newMaterial('refused again', '-6'));
    await waitFor(
      'the first to wait',
      async () => (await plane.cluster.status('common')).nodes?.[0]?.phase === 'Reloading',
      LIMIT,
    );
    const refused = await configOn(one);
    const next = plane.newMaterial('meanwhile');
    await plane.cluster.setSecret('ingress', next);
    // Far less than the 180 s that the first one would have had.
    await waitFor('the next one', async () => (await configOn(one)) !== refused, { limitMs: 30_000 });
    await waitFor(
      'the Secret',
      async () => (await plane.cluster.textsOf('dex'))?.['tls.crt'] === next['tls.crt'],
      LIMIT,
    );
    await until('Ready', 'True Rotated');
    const steps = rotator.log().filter(({ msg, node }) => msg === 'node step' && node === 'node-1');
    assert.deepEqual(
      steps.slice(-5).map(({ step }) => step),
      ['begin', 'write', 'begin', 'write', 'finish'],
    );
    assert.deepEqual(await pids(), running);
  });

  test('that do not tell what they run with are left alone, with the reason; or restarted where that is allowed', async () => {
    const binding = await plane.call('GET', METRICS_ROLE);
    await plane.call('DELETE', METRICS_ROLE);
    const [before, running] = await Promise.all([Promise.all(nodes().map(configOn)), pids()]);
    const next = plane.newMaterial('third');
    await plane.cluster.setSecret('ingress', next);
    await until('Degraded', 'True RolloutStopped', /^node-1: reload: .*may not read \/metrics/u);
    assert.deepEqual(await Promise.all(nodes().map(configOn)), before);
    await plane.cluster.change('common', { apiServerOIDC: reload({ restartWithoutMetric: true }) });
    await until('Ready', 'True Rotated');
    const now = await pids();
    assert.ok(now.every((pid, i) => pid !== running[i]));
    await allTakeFreshTokens();
    assert.equal(binding.status, 200);
  });
});
