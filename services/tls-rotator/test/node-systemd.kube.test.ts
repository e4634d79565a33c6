import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes, skipWithoutSystemd } from '../../../test/support/kube-nodes/network.ts';
import { startNodes, type TestNode, type TestNodes } from '../../../test/support/kube-nodes/nodes.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type Access, createNodeSession, type NodeSession } from '../src/nodes/session.ts';
import { parseKnownHosts } from '../src/rules/known-hosts.ts';
import { NO_FILE } from '../src/rules/node-facts.ts';

const CA = '/etc/kubernetes/pki/ingress-ca.crt';
const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver.yaml';
const LIMIT = { limitMs: 60_000, everyMs: 100 };
const JOURNAL = { version: 1, phase: 'forward', target: 'x', previous: NO_FILE, oldProcesses: [], parks: 1 };

describe('a node with systemd', {
  skip: skipWithoutKube() || skipWithoutNodes() || skipWithoutSystemd(),
  timeout: 600_000,
}, () => {
  let plane: TestNodes;
  let node: TestNode;
  let session: NodeSession;
  let access: Access;
  before(async () => {
    plane = await startNodes({ count: 1, init: 'systemd', pki: { 'ingress-ca.crt': 'first\n' } });
    [node] = plane.nodes as [TestNode];
    const knownHosts = parseKnownHosts(plane.knownHosts);
    access = {
      ssh: { port: 22, user: 'root', privateKey: plane.sshKey, knownHosts },
      paths: { manifest: MANIFEST, ca: CA, key: undefined },
      probe: { port: 6443, serverName: 'kubernetes.default.svc', ca: plane.ca, authorization: undefined },
    };
    session = createNodeSession(node);
    await waitFor('the API server', () => session.ready(access), LIMIT);
  });
  after(async () => {
    await session?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const park = async (restoreMs: number) => {
    const args = [String(restoreMs)];
    await session.run(access, { verb: 'begin', input: `${JSON.stringify(JOURNAL)}\nnext\n` });
    await session.run(access, { verb: 'arm', args });
    await session.run(access, { verb: 'park', args, input: `${JSON.stringify(JOURNAL)}\n` });
    const { manifest, armed } = await session.look(access);
    assert.deepEqual({ where: manifest.where, armed }, { where: 'parked', armed: true });
  };
  const inPlace = async () => (await session.look(access)).manifest.where === 'in-place';

  test('runs the restorer in a unit of its own, which outlives sshd and everything it has started', async () => {
    await park(4000);
    const [, , pid] = (await readFile(node.file('etc/kubernetes/colonnade-tls/deadline'), 'utf8'))
      .trim()
      .split(' ');
    const cgroup = await node.exec('cat', `/proc/${pid}/cgroup`);
    assert.match(cgroup, /\/system\.slice\/run-\w+\.service/u);
    await node.exec('systemctl', 'kill', '--kill-whom=all', '--signal=KILL', 'sshd.service');
    await waitFor('the manifest', inPlace, LIMIT);
    await waitFor('the API server', () => session.ready(access), LIMIT);
    await session.run(access, { verb: 'finish' });
  });

  test('brings the manifest back at its next start, long before the deadline', async () => {
    await park(3_600_000);
    await node.kill();
    await node.start();
    await waitFor('the manifest', inPlace, LIMIT);
    await waitFor('the API server', () => session.ready(access), LIMIT);
    const log = await node.exec(
      'systemctl',
      'show',
      '-p',
      'Result,ConditionResult',
      'colonnade-tls-restore.service',
    );
    assert.match(log, /Result=success/u);
  });

  test('has nothing of it left once the work is over', async () => {
    await session.run(access, { verb: 'finish' });
    assert.equal((await session.look(access)).armed, false);
    assert.doesNotMatch(await node.exec('ls', '-R', '/etc/systemd/system'), /colonnade/u);
  });
});
