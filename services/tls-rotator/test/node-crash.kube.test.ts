import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { skipWithoutNodes } from '../../../test/support/kube-nodes/network.ts';
import { startNodes, type TestNode, type TestNodes } from '../../../test/support/kube-nodes/nodes.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type DriveResult, driveNode } from '../src/nodes/drive-node.ts';
import { type Access, createNodeSession, type NodeSession } from '../src/nodes/session.ts';
import { hashOf } from '../src/rules/certificates.ts';
import { parseKnownHosts } from '../src/rules/known-hosts.ts';
import type { OidcSpec } from '../src/spec.ts';

const CA = '/etc/kubernetes/pki/ingress-ca.crt';
const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver.yaml';
const LIMIT = { limitMs: 120_000, everyMs: 100 };

describe('a node whose rotator dies', {
  skip: skipWithoutKube() || skipWithoutNodes(),
  timeout: 1_200_000,
}, () => {
  let plane: TestNodes;
  let node: TestNode;
  let session: NodeSession;
  let access: Access;
  before(async () => {
    plane = await startNodes({ count: 1, pki: { 'ingress-ca.crt': 'first\n' } });
    [node] = plane.nodes as [TestNode];
    access = {
      ssh: {
        port: 22,
        user: 'root',
        privateKey: plane.sshKey,
        knownHosts: parseKnownHosts(plane.knownHosts),
      },
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

  const faults: string[] = [];
  /** @param dies after so many changes of the node */
  const drive = (bundle: string, dies = Number.POSITIVE_INFINITY): Promise<DriveResult> => {
    let changes = 0;
    const restart = { minimumWaitSeconds: 0, stopTimeoutSeconds: 30, readyTimeoutSeconds: 90 };
    const mortal: NodeSession = {
      ...session,
      async run(how, step) {
        if (changes >= dies) throw new ColonnadeError('internal', 'killed');
        changes += 1;
        return session.run(how, step);
      },
    };
    const stop = new AbortController();
    return driveNode({
      ...{ session: mortal, access, pollMs: 100, stop: stop.signal, mayBegin: () => true },
      isOutdated: () => false,
      oidc: { restart } as OidcSpec,
      plan: {
        target: hashOf(bundle),
        keyTarget: undefined,
        minWaitMs: 0,
        goneTimeoutMs: 30_000,
        readyTimeoutMs: 90_000,
      },
      payload: { bundle, key: undefined },
      gate: async () => ({ gate: undefined }),
      onPhase: async () => {},
      onStep: async () => {},
      // Whoever is dead tries nothing again.
      onStepFailed: async (_, { message }) => {
        faults.push(message);
        stop.abort();
      },
    });
  };
  const present = () => readFile(node.file('etc/kubernetes/pki/ingress-ca.crt'), 'utf8');
  const started = async () => (await session.look(access)).processes.map(({ id }) => id).join();

  for (const dies of [0, 1, 2, 3, 4, 5]) {
    test(`after ${dies} steps is finished by the next one, with one restart`, async () => {
      const bundle = `bundle ${dies}\n`;
      const before = await started();
      assert.notEqual((await drive(bundle, dies)).end, 'done');
      assert.deepEqual(await drive(bundle), { end: 'done' });
      assert.equal(await present(), bundle);
      const { journal, processes, armed } = await session.look(access);
      assert.deepEqual(
        { journal, armed, count: processes.length },
        { journal: undefined, armed: false, count: 1 },
      );
      const once = await started();
      assert.notEqual(once, before);
      assert.deepEqual(await drive(bundle), { end: 'done' });
      assert.equal(await started(), once, 'nothing more is to be done');
    });
  }

  const park = async (bundle: string, restoreMs: number) => {
    await drive(bundle, 3);
    const { journal } = await session.look(access);
    await session.run(access, { verb: 'arm', args: [String(restoreMs)] });
    await session.run(access, {
      verb: 'park',
      args: [String(restoreMs)],
      input: `${JSON.stringify({ ...journal, parks: 1 })}\n`,
    });
    assert.equal((await session.look(access)).manifest.where, 'parked');
  };
  const inPlace = async () => (await session.look(access)).manifest.where === 'in-place';

  test('for good gets its manifest back by itself', async () => {
    await park('left alone\n', 4000);
    await waitFor('the manifest', inPlace, LIMIT);
    await waitFor('the API server', () => session.ready(access), LIMIT);
    assert.deepEqual(await drive('left alone\n'), { end: 'done' });
    assert.equal(await present(), 'left alone\n');
  });

  test('and which is rebooted gets its manifest back at once, long before the deadline', async () => {
    await park('rebooted\n', 3_600_000);
    await node.kill();
    await node.start();
    await waitFor('the manifest', inPlace, LIMIT);
    await waitFor('the API server', () => session.ready(access), LIMIT);
    assert.deepEqual(await drive('rebooted\n'), { end: 'done' });
    assert.equal((await session.look(access)).armed, false);
  });

  test('loses nothing when its connection drops in the middle of a command', async () => {
    const running = drive('dropped\n');
    await waitFor(
      'the manifest to be parked',
      async () => (await session.look(access)).manifest.where === 'parked',
      LIMIT,
    );
    await node.exec('pkill', '-f', 'sshd: root@notty');
    await running;
    assert.deepEqual(await drive('dropped\n'), { end: 'done' });
    assert.equal(await present(), 'dropped\n');
  });

  describe('loses nothing when sshd drops while it is in the middle of', () => {
    const hold = '/etc/kubernetes/hold';
    // Every change ends in a sync. The one that is asked for waits until we let it go.
    const script = `#!/bin/sh
read -r verb count <${hold} 2>/dev/null || count=0
if [ $count -gt 0 ] && tr '\\0' '\\n' </proc/$PPID/cmdline | grep -q -x "$verb"; then
  echo "$verb $((count - 1))" >${hold}
  if [ $count -eq 1 ]; then while [ -e ${hold} ]; do sleep 0.1; done; fi
fi
exec /etc/kubernetes/real-sync "$@"
`;
    before(async () => {
      await node.exec('cp', '/usr/bin/sync', '/etc/kubernetes/real-sync');
      await writeFile(node.file('etc/kubernetes/slow-sync'), script, { mode: 0o755 });
      await node.exec('mount', '--bind', '/etc/kubernetes/slow-sync', '/usr/bin/sync');
    });

    for (const [verb, sync] of [
      ['write', 2],
      ['park', 3],
      ['unpark', 1],
    ] as const) {
      test(verb, async () => {
        await writeFile(node.file(hold), `${verb} ${sync}\n`);
        const bundle = `dropped in ${verb}\n`;
        const running = drive(bundle);
        const isHeld = async () => (await readFile(node.file(hold), 'utf8')).trim() === `${verb} 0`;
        await waitFor(`${verb} to be held`, isHeld, LIMIT);
        await node.exec('pkill', '-f', 'sshd: root@notty');
        assert.notEqual((await running).end, 'done');
        await rm(node.file(hold));
        assert.deepEqual(await drive(bundle), { end: 'done' });
        assert.equal(await present(), bundle);
        assert.equal((await session.look(access)).processes.length, 1);
      });
    }
  });

  test('is not begun where its manifest cannot be moved away and back in one step', async () => {
    const folder = '/etc/kubernetes/manifests';
    for (const [how, reason] of [
      ['rw', /are not on one mount/u],
      ['ro', /are not on one mount|cannot be written to/u],
    ] as const) {
      await node.exec('mount', '--bind', '-o', how, folder, folder);
      const before = await present();
      const end = await drive(`mounted ${how}\n`);
      await node.exec('umount', folder);
      assert.equal(end.end, 'waiting', JSON.stringify(end));
      assert.match(faults.at(-1) ?? '', reason);
      assert.equal(await present(), before);
      assert.equal((await session.look(access)).journal, undefined);
    }
  });

  test('keeps owner and mode of the file, and makes no part of it on a full disk', async () => {
    await node.exec('chown', '4242:4242', CA);
    await node.exec('chmod', '0640', CA);
    assert.deepEqual(await drive('owned\n'), { end: 'done' });
    assert.equal((await node.exec('stat', '-c', '%u %g %a', CA)).trim(), '4242 4242 640');
    await node.exec(
      'sh',
      '-c',
      `mount -t tmpfs -o size=64k tmpfs /mnt && cp -a /etc/kubernetes/pki/. /mnt/ && mount --bind /mnt /etc/kubernetes/pki`,
    );
    await node.exec('sh', '-c', 'head -c 60000 /dev/zero > /etc/kubernetes/pki/filler || true');
    const before = await started();
    const end = await drive(`${'x'.repeat(70_000)}\n`);
    assert.equal(end.end, 'waiting', JSON.stringify(end));
    assert.equal((await node.exec('cat', CA)).trim(), 'owned');
    assert.deepEqual(
      (await node.exec('ls', '-A', '/etc/kubernetes/pki')).split('\n').filter((name) => name.startsWith('.')),
      [],
    );
    assert.equal(await started(), before);
    await node.exec('umount', '/etc/kubernetes/pki');
    assert.deepEqual(await drive('room again\n'), { end: 'done' });
  });
});
