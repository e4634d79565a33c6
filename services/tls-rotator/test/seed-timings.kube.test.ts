import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { startControlPlane } from './control-plane.ts';
import { startRotator } from './support.ts';

/** Seed 004: `sleep 20` between the two moves; a static pod's own grace is 30 s. */
const SEED_WAIT_MS = 20_000;

describe('a rotation at the timings of the seed', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_800_000,
}, () => {
  test('takes every API server away for its twenty seconds at least, and one at a time', async () => {
    await using plane = await startControlPlane({ graceSeconds: 30 });
    await using rotator = await startRotator(plane.kubeconfig, {
      ...plane.env,
      NODE_POLL_MS: '1000',
      LEASE_MS: '15000',
    });
    const { nodes } = plane.plane;
    const next = plane.newMaterial('second');
    await plane.cluster.apply('common', plane.spec({ restart: {} }));
    await plane.cluster.setSecret('ingress', next);
    let most = 0;
    await waitFor(
      'the rotation',
      async () => {
        const answers = await Promise.all(nodes.map((node) => plane.isReady(node)));
        most = Math.max(most, answers.filter((ready) => !ready).length);
        const status = await plane.cluster.status('common').catch(() => undefined);
        const ready = status?.conditions.find(({ type }) => type === 'Ready');
        const served = await plane.cluster.textsOf('dex').catch(() => undefined);
        return ready?.status === 'True' && served?.['tls.crt'] === next['tls.crt'];
      },
      { limitMs: 1_200_000, everyMs: 200 },
    );
    assert.equal(most, 1);
    const steps = rotator.log().filter(({ msg }) => msg === 'node step');
    for (const { name } of nodes) {
      const at = (step: string) =>
        Date.parse(String(steps.find((s) => s.node === name && s.step === step)?.time));
      assert.ok(
        at('unpark') - at('park') >= SEED_WAIT_MS,
        `${name} was away for ${at('unpark') - at('park')} ms`,
      );
    }
    for (const node of nodes) {
      await waitFor(`${node.name} to take a token with a new key`, () => plane.takesFreshToken(node), {
        limitMs: 60_000,
        everyMs: 500,
      });
    }
  });
});
