import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import type { TestNode } from '../../../test/support/kube-nodes/nodes.ts';
import { createRandom } from '../../../test/support/random.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { type RotatorProcess, startRotatorProcess } from './support.ts';

const SEED = 7;
const LIMIT = { limitMs: 200_000, everyMs: 200 };
const MOST_KILLS = 20;

describe('a rotator that is killed as a process', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let dir: TempDir;
  let plane: ControlPlane;
  let one: TestNode;
  let two: TestNode;
  let rotator: RotatorProcess;
  before(async () => {
    dir = await tempDir('kills');
    plane = await startControlPlane({ count: 2 });
    [one, two] = plane.plane.nodes as [TestNode, TestNode];
    await start();
    await plane.cluster.apply('common', plane.spec());
    await ready();
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await plane?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  const start = async () => {
    rotator = await startRotatorProcess(plane.kubeconfig, { dir: dir.path, env: plane.env });
  };
  const ready = () =>
    waitFor(
      'Ready',
      async () => {
        const is = await plane.cluster.condition('common', 'Ready');
        if (is === 'True Rotated') return true;
        throw new Error(`${is}: ${JSON.stringify(await plane.cluster.status('common'))}`);
      },
      LIMIT,
    );
  const served = async (crt: string) => (await plane.cluster.textsOf('dex'))?.['tls.crt'] === crt;
  const pids = () =>
    Promise.all([one, two].map((node) => node.exec('pgrep', '-x', 'kube-apiserver').catch(() => '')));
  const journals = () =>
    Promise.all(
      [one, two].map((node) => node.exec('ls', '-A', '/etc/kubernetes/colonnade-tls').catch(() => '')),
    );
  const steps = async () =>
    (await rotator.log()).flatMap(({ msg, node, step }) => (msg === 'node step' ? [`${node} ${step}`] : []));
  /** Kills it once it says that it has made this step, and has the next one hardly begun. */
  const killAfter = async (step: string) => {
    await waitFor(step, async () => (await steps()).includes(step), { limitMs: 200_000, everyMs: 5 });
    await rotator.kill();
  };

  /** How many API servers were away at the same time. */
  const watching = () => {
    const state = { most: 0, over: false };
    const done = (async () => {
      while (!state.over) {
        const answers = await Promise.all([one, two].map((node) => plane.isReady(node)));
        state.most = Math.max(state.most, answers.filter((is) => !is).length);
        await sleep(50);
      }
    })();
    return {
      async end() {
        state.over = true;
        await done;
        return state.most;
      },
    };
  };

  test('after whichever step has its rotation finished by the next, one API server at a time', async () => {
    const random = createRandom(SEED);
    const next = plane.newMaterial('second');
    const before = await pids();
    const away = watching();
    await plane.cluster.setSecret('ingress', next);
    const killed = new Set<string>();
    for (let kills = 0; kills < MOST_KILLS; kills += 1) {
      const made = await waitFor(
        'a step, or the end',
        async () => {
          const found = await steps();
          return found.length > 0 || (await served(next['tls.crt'])) ? found : undefined;
        },
        { limitMs: 200_000, everyMs: 20 },
      );
      if (made.length === 0) break;
      // Between two steps, or somewhere in the next one.
      await sleep(random.below(300));
      killed.add((await steps()).at(-1) ?? '');
      await rotator.kill();
      await start();
    }
    assert.ok(killed.size >= 6, `killed after ${[...killed].join(', ')}`);
    await waitFor('the Secret', () => served(next['tls.crt']), LIMIT);
    await ready();
    assert.equal(await away.end(), 1);
    const now = await pids();
    assert.ok(now.every((pid, i) => pid !== '' && pid !== before[i]));
    for (const left of await journals()) assert.doesNotMatch(left, /journal|kube-apiserver\.yaml/u);
    for (const node of [one, two]) {
      assert.ok((await plane.caOn(node)).startsWith(next['ca.crt'].trim()));
      await waitFor('a token with a new key', () => plane.takesFreshToken(node), LIMIT);
    }
    assert.deepEqual(
      (await plane.cluster.status('common')).nodes?.map(({ phase }) => phase),
      ['Done', 'Done'],
    );
  });

  test('and whose apiServerOIDC is switched off before the next one comes, has its node finished all the same', async () => {
    const next = plane.newMaterial('third');
    const before = await pids();
    await plane.cluster.setSecret('ingress', next);
    await killAfter('node-1 write');
    await plane.cluster.change('common', { apiServerOIDC: { enabled: false } });
    await start();
    await waitFor('the journal to go', async () => !(await journals())[0]?.includes('journal'), LIMIT);
    await ready();
    const now = await pids();
    assert.notEqual(now[0], before[0], 'it was written, so it was restarted');
    assert.equal(now[1], before[1], 'no other was begun');
    await plane.cluster.change('common', { apiServerOIDC: { enabled: true } });
    await waitFor('the other', async () => (await plane.caOn(two)).startsWith(next['ca.crt'].trim()), LIMIT);
    await ready();
  });

  test('and whose IngressTLS is deleted while its node is away, lets it go once the node is finished', async () => {
    await plane.cluster.setSecret('ingress', plane.newMaterial('fourth'));
    await killAfter('node-1 write');
    await one.kill();
    await start();
    await waitFor(
      'it to be known as away',
      async () => (await plane.cluster.status('common')).nodes?.[0]?.phase === 'Unreachable',
      LIMIT,
    );
    await plane.cluster.removeIngress('common');
    await waitFor(
      'the deletion to wait',
      async () => (await rotator.log()).some(({ msg }) => String(msg).startsWith('deletion waits')),
      LIMIT,
    );
    assert.ok(await plane.cluster.ingressThere('common'));
    await one.start();
    // One that has just started knows of no IngressTLS at all.
    await waitFor('it to be ready', () => plane.isReady(one), LIMIT);
    await waitFor('its end', async () => !(await plane.cluster.ingressThere('common')), LIMIT);
    assert.doesNotMatch((await journals())[0] ?? '', /journal/u);
  });
});
