import assert from 'node:assert/strict';
import { appendFile, readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import type { TestNode } from '../../../test/support/kube-nodes/nodes.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { runTool } from './pki.ts';
import { type Rotator, startRotator } from './support.ts';

const LIMIT = { limitMs: 200_000, everyMs: 200 };

describe('a control plane of one API server, which is the one the rotator talks to', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let plane: ControlPlane;
  let rotator: Rotator;
  let node: TestNode;
  before(async () => {
    plane = await startControlPlane({ count: 1 });
    [node] = plane.plane.nodes as [TestNode];
    rotator = await startRotator(plane.kubeconfig, plane.env);
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
  });

  const until = (expected: string, message = /^/u) =>
    waitFor(
      expected,
      async () => {
        const is = await plane.cluster.condition('common', 'Ready');
        const { conditions } = await plane.cluster.status('common');
        const found = conditions.find(({ type }) => type === 'Ready')?.message ?? '';
        if (is === expected && message.test(found)) return true;
        throw new Error(`${is}: ${found}`);
      },
      LIMIT,
    );
  const pid = () => node.exec('pgrep', '-x', 'kube-apiserver');
  const served = async (crt: string) => (await plane.cluster.textsOf('dex'))?.['tls.crt'] === crt;

  test('is not taken away unless that is allowed', async () => {
    await plane.cluster.apply('common', plane.spec());
    await until('True Rotated');
    const before = await pid();
    await plane.cluster.setSecret('ingress', plane.newMaterial('second'));
    await until('False RollingOut', /it is the only node: its restart needs restart\.allowDowntime/u);
    assert.equal(await pid(), before);
    assert.equal(await plane.caOn(node), plane.first['ca.crt']);
  });

  test('is rotated while every connection to it drops, and the rest follows once it is back', async () => {
    const before = await pid();
    const [next, from] = [plane.newMaterial('third'), rotator.log().length];
    await plane.cluster.setSecret('ingress', next);
    await plane.cluster.change('common', { apiServerOIDC: { restart: { allowDowntime: true } } });
    await waitFor('the Secret', () => served(next['tls.crt']), LIMIT);
    await until('True Rotated');
    assert.notEqual(await pid(), before);
    const log = rotator.log().slice(from);
    const step = (name: string) => log.findIndex((l) => l.msg === 'node step' && l.step === name);
    const meanwhile = log.slice(step('park'), step('finish')).map(({ msg, code }) => `${msg}: ${code}`);
    for (const what of ['watch failed', 'lease not renewed'])
      assert.ok(meanwhile.includes(`${what}: unavailable`), `${what} not in ${meanwhile.join(', ')}`);
    await waitFor('a token with a new key', () => plane.takesFreshToken(node), LIMIT);
  });

  test('is reached through OpenSSH where only the authority of its host certificate is pinned', async () => {
    const [authority, host] = ['host-authority', 'host_ed25519'].map((name) => path.join(node.dir, name));
    runTool('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', `${authority}`);
    runTool('ssh-keygen', '-q', '-s', `${authority}`, '-h', '-I', 'one', '-n', node.address, `${host}.pub`);
    await appendFile(path.join(node.dir, 'sshd_config'), `HostCertificate ${host}-cert.pub\n`);
    await node.kill();
    await node.start();
    await waitFor('it to be ready', () => plane.isReady(node), LIMIT);
    const pin = `@cert-authority * ${await readFile(`${authority}.pub`, 'utf8')}`;
    await plane.cluster.setSecret('colonnade', { known_hosts: pin }, 'tls-rotator-known-hosts');
    const before = await pid();
    const next = plane.newMaterial('by certificate');
    await plane.cluster.setSecret('ingress', next);
    await waitFor('the Secret', () => served(next['tls.crt']), LIMIT);
    await until('True Rotated');
    assert.notEqual(await pid(), before);
    assert.ok((await plane.caOn(node)).startsWith(next['ca.crt'].trim()));
  });

  test('keeps the CA of what is served, also where a source comes and goes half-way', async () => {
    await plane.cluster.change('common', { apiServerOIDC: { dropOldCAAfterSeconds: 0 } });
    const settled = plane.newMaterial('fourth');
    await plane.cluster.setSecret('ingress', settled);
    const only = (ca: string) => ca.split('BEGIN').length === 2 && ca.trim() === settled['ca.crt'].trim();
    await waitFor('the others to be dropped', async () => only(await plane.caOn(node)), LIMIT);
    await until('True Rotated');
    await plane.cluster.merge(plane.cluster.secretPath('shop'), { immutable: true });
    const next = plane.newMaterial('fifth');
    await plane.cluster.setSecret('ingress', next);
    await until('False TargetsFailed', /immutable/u);
    assert.ok(await served(next['tls.crt']), 'one of the two has been written');
    assert.ok((await plane.caOn(node)).includes(next['ca.crt'].trim()));
    const from = rotator.log().length;
    await plane.cluster.setSecret('ingress', settled);
    await waitFor('the other CA to go', async () => only(await plane.caOn(node)), LIMIT);
    await until('True Rotated');
    const log = rotator.log().slice(from);
    const written = log.findIndex((l) => l.msg === 'target written');
    const dropped = log.findIndex((l) => l.msg === 'node step' && l.step === 'write');
    assert.ok(written >= 0 && written < dropped, `served by nobody first: ${written}, ${dropped}`);
  });
});
