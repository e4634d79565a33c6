import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import { PLAIN_USER } from '../../../test/support/kube-nodes/node-files.ts';
import type { TestNode } from '../../../test/support/kube-nodes/nodes.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { runTool } from './pki.ts';
import { type Rotator, startRotator } from './support.ts';

const LIMIT = { limitMs: 200_000, everyMs: 200 };
const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver.yaml';

describe('what goes wrong on nodes', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let plane: ControlPlane;
  let rotator: Rotator;
  let one: TestNode;
  let two: TestNode;
  before(async () => {
    plane = await startControlPlane({ count: 2 });
    [one, two] = plane.plane.nodes as [TestNode, TestNode];
    rotator = await startRotator(plane.kubeconfig, plane.env);
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const untilMessage = (type: string, expected: string, message: RegExp) =>
    waitFor(
      `${type} ${expected} ${message}`,
      async () => {
        const { conditions, nodes } = await plane.cluster.status('common');
        const found = conditions.find((c) => c.type === type);
        if ((await plane.cluster.condition('common', type)) === 'not seen') throw new Error('not seen yet');
        const text = `${found?.message} ${nodes?.map((n) => n.message).join(' ')}`;
        if (`${found?.status} ${found?.reason}` === expected && message.test(text)) return true;
        throw new Error(JSON.stringify({ found, nodes }));
      },
      LIMIT,
    );
  const rotated = () => untilMessage('Ready', 'True Rotated', /./u);
  const pids = async (node: TestNode) => (await node.exec('pgrep', '-x', 'kube-apiserver')).trim();
  const retry = (why: string) => plane.cluster.annotate('common', { 'tls.dropapp.ru/retry': why });
  const setHosts = (text: string) =>
    plane.cluster.setSecret('colonnade', { known_hosts: text }, 'tls-rotator-known-hosts');

  test('a node whose host key is not pinned, changed or revoked is not spoken to', async () => {
    const good = plane.plane.knownHosts;
    const before = await Promise.all([pids(one), pids(two)]);
    await setHosts(`elsewhere ${one.hostKeys[0]}\n`);
    await plane.cluster.apply('common', plane.spec());
    await untilMessage(
      'APIServersRotated',
      'False RollingOut',
      /no host key of 10\..* is pinned.*ssh-keyscan 10\./u,
    );
    const swapped = good
      .replaceAll(one.address, '@')
      .replaceAll(two.address, one.address)
      .replaceAll('@', two.address);
    for (const [text, message] of [
      [swapped, /host key of .* is not the pinned one/u],
      [`@revoked * ${one.hostKeys[0]}\n@revoked * ${two.hostKeys[0]}\n${good}`, /host key of .* is revoked/u],
      [
        `@cert-authority * ${one.hostKeys[0]}\n`,
        /host certificate of .* is refused: .*no matching host key type/u,
      ],
    ] as const) {
      await setHosts(text);
      await retry(String(message));
      await untilMessage('APIServersRotated', 'False RollingOut', message);
    }
    const hashed = path.join(plane.plane.dir, 'hashed');
    await writeFile(hashed, good.replaceAll(/^.* (ssh-ed25519|ssh-rsa) .*\n/gmu, ''));
    runTool('ssh-keygen', '-q', '-H', '-f', hashed);
    await setHosts(await readFile(hashed, 'utf8'));
    await retry('hashed, and of one type only');
    await rotated();
    assert.deepEqual(await Promise.all([pids(one), pids(two)]), before);
  });

  test('a key that the node refuses is told; keys of every form and a user with sudo are taken', async () => {
    const set = (text: string) =>
      plane.cluster.setSecret('colonnade', { 'ssh-privatekey': text }, 'tls-rotator-ssh');
    const other = path.join(plane.plane.dir, 'other');
    runTool('ssh-keygen', '-q', '-t', 'rsa', '-m', 'PEM', '-N', '', '-f', other);
    await set(await readFile(other, 'utf8'));
    await retry('another key');
    await untilMessage('APIServersRotated', 'False RollingOut', /does not accept the key for root/u);
    await set('not a key');
    await retry('no key');
    await untilMessage('APIServersRotated', 'False RollingOut', /SSH key cannot be read/u);
    const pkcs8 = runTool('openssl', 'genpkey', '-algorithm', 'ed25519');
    const pkcs8File = path.join(plane.plane.dir, 'pkcs8');
    await writeFile(pkcs8File, pkcs8, { mode: 0o600 });
    for (const [name, text] of [
      ['PEM', await readFile(other, 'utf8')],
      ['PKCS#8', pkcs8],
    ] as const) {
      const { readSshKey } = await import('../src/nodes/private-key.ts');
      const { default: ssh2 } = await import('ssh2');
      const parsed = ssh2.utils.parseKey(readSshKey(text));
      assert.ok(!(parsed instanceof Error), name);
      const line = `${parsed.type} ${parsed.getPublicSSH().toString('base64')}\n`;
      for (const node of [one, two]) await writeFile(node.file('etc/ssh/authorized_keys'), line);
      await set(text);
      await plane.cluster.change('common', {
        apiServerOIDC: { ssh: { user: name === 'PEM' ? 'root' : PLAIN_USER } },
      });
      await retry(name);
      await rotated();
    }
  });

  test('while another API server is down no node is begun; when it is back, all are', async () => {
    const before = await pids(one);
    await two.exec('mv', MANIFEST, '/etc/kubernetes/aside');
    await waitFor('it to be down', async () => !(await plane.isReady(two)), LIMIT);
    const next = plane.newMaterial('second');
    await plane.cluster.setSecret('ingress', next);
    await untilMessage('APIServersRotated', 'False RollingOut', /waiting for the API server of node-2/u);
    assert.equal(await pids(one), before);
    assert.equal(await plane.caOn(one), plane.first['ca.crt']);
    assert.equal(
      (await plane.cluster.textsOf('shop'))?.['tls.crt'],
      plane.first['tls.crt'],
      'Secrets wait too',
    );
    await two.exec('mv', '/etc/kubernetes/aside', MANIFEST);
    await rotated();
    assert.notEqual(await pids(one), before);
    for (const node of [one, two]) assert.ok((await plane.caOn(node)).includes(next['ca.crt'].trim()));
  });

  test('a folder that cannot be written to stops the rollout there, and a retry goes on', async () => {
    const before = await Promise.all([pids(one), pids(two)]);
    await one.exec('mount', '--bind', '-o', 'ro', '/etc/kubernetes/pki', '/etc/kubernetes/pki');
    await plane.cluster.setSecret('ingress', plane.newMaterial('third'));
    await untilMessage('Degraded', 'True RolloutStopped', /node-1: write: .*[Rr]ead-only/u);
    assert.deepEqual(await Promise.all([pids(one), pids(two)]), before);
    await one.exec('umount', '/etc/kubernetes/pki');
    await retry('writable again');
    await rotated();
    assert.notEqual(await pids(two), before[1]);
  });

  test('an API server that does not start with the new CA gets the old one back, and no other is touched', async () => {
    const next = plane.newMaterial('fourth');
    const before = await pids(two);
    const file = one.file(MANIFEST);
    const text = await readFile(file, 'utf8');
    const pod = JSON.parse(text) as { spec: { containers: { command: string[] }[] } };
    const line = next['ca.crt'].split('\n')[3] ?? '';
    const script = 'case "$(cat /etc/kubernetes/pki/ingress-ca.crt)" in *"$0"*) exit 1;; esac; exec "$@"';
    const command = pod.spec.containers[0]?.command ?? [];
    pod.spec.containers[0] = {
      ...pod.spec.containers[0],
      command: ['/bin/sh', '-c', script, line, ...command],
    };
    await writeFile(file, JSON.stringify(pod));
    await waitFor('it to run that way', async () => !(await plane.isReady(one)), LIMIT);
    await waitFor('it to be back', () => plane.isReady(one), LIMIT);
    await plane.cluster.change('common', { apiServerOIDC: { restart: { readyTimeoutSeconds: 15 } } });
    await plane.cluster.setSecret('ingress', next);
    await untilMessage('Degraded', 'True RolloutStopped', /node-1: start: no kube-apiserver runs/u);
    assert.ok(!(await plane.caOn(one)).includes(line));
    assert.ok(await plane.isReady(one));
    assert.equal(await pids(two), before);
    assert.equal((await plane.cluster.status('common')).nodes?.[0]?.phase, 'RolledBack');
    await writeFile(file, text);
    await waitFor(
      'the plain one',
      async () => (await plane.isReady(one)) && !(await one.exec('ps', 'ax')).includes('-c case'),
      LIMIT,
    );
    await plane.cluster.change('common', { apiServerOIDC: { restart: { readyTimeoutSeconds: 120 } } });
    await retry('mended');
    await rotated();
  });

  test('one that comes back with neither CA is left to a person, and no other is touched', async () => {
    const file = one.file(MANIFEST);
    const text = await readFile(file, 'utf8');
    const pod = JSON.parse(text) as { spec: { containers: { command: string[] }[] } };
    const command = pod.spec.containers[0]?.command ?? [];
    const script = '[ ! -e /etc/kubernetes/broken ] || exit 1; exec "$@"';
    const wrapped = ['/bin/sh', '-c', script, 'kube-apiserver', ...command];
    pod.spec.containers[0] = { ...pod.spec.containers[0], command: wrapped };
    const [ca, before] = [await plane.caOn(one), await pids(one)];
    await writeFile(file, JSON.stringify(pod));
    await waitFor('it to run that way', async () => (await pids(one).catch(() => before)) !== before, LIMIT);
    await waitFor('it to be back', () => plane.isReady(one), LIMIT);
    const [other, otherCa] = [await pids(two), await plane.caOn(two)];
    await writeFile(one.file('/etc/kubernetes/broken'), '');
    await plane.cluster.change('common', { apiServerOIDC: { restart: { readyTimeoutSeconds: 10 } } });
    await plane.cluster.setSecret('ingress', plane.newMaterial('fifth'));
    await untilMessage(
      'Degraded',
      'True RolloutStopped',
      /node-1: start: no kube-apiserver runs, with the old CA too; before that: start: no kube-apiserver runs/u,
    );
    assert.equal(await plane.caOn(one), ca);
    assert.deepEqual([await pids(two), await plane.caOn(two)], [other, otherCa]);
    const status = await plane.cluster.status('common');
    assert.equal(status.nodes?.[0]?.phase, 'Failed');
    assert.equal(status.stopped?.node, 'node-1');
    await rm(one.file('/etc/kubernetes/broken'));
    await waitFor('it to be mended', () => plane.isReady(one), LIMIT);
    await plane.cluster.change('common', { apiServerOIDC: { restart: { readyTimeoutSeconds: 120 } } });
    await retry('mended again');
    await rotated();
    await writeFile(file, text);
    await waitFor(
      'the plain one',
      async () => (await plane.isReady(one)) && !(await one.exec('ps', 'ax')).includes('broken'),
      LIMIT,
    );
  });

  test('a node that is down from the start holds up every other, and all are rotated once it is there', async () => {
    await rotator[Symbol.asyncDispose]();
    const before = await pids(one);
    const ca = await plane.caOn(one);
    const served = await plane.cluster.textsOf('shop');
    await two.kill();
    await plane.cluster.setSecret('ingress', plane.newMaterial('sixth'));
    rotator = await startRotator(plane.kubeconfig, plane.env);
    await untilMessage('APIServersRotated', 'False RollingOut', /waiting for the API server of node-2/u);
    assert.equal((await plane.cluster.status('common')).nodes?.[1]?.phase, 'Unreachable');
    assert.deepEqual([await pids(one), await plane.caOn(one)], [before, ca]);
    assert.deepEqual(await plane.cluster.textsOf('shop'), served);
    await two.start();
    await rotated();
    assert.notEqual(await pids(one), before);
  });
});
