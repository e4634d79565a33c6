import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isLeftBegun, watchChanges } from './begun.ts';
import { isBegun } from './nodes/node-book.ts';
import { type Allowed, type IngressTls, parseSpec } from './spec.ts';
import type { NodeStatus } from './status.ts';

const ALLOWED: Allowed = {
  sourceNamespaces: ['ingress'],
  pathPrefixes: ['/etc/kubernetes/'],
  nodeAddresses: { check: () => true },
};
const ssh = { keySecretRef: { name: 'k' }, knownHostsSecretRef: { name: 'h' } };
const ingress = (apiServerOIDC: object, generation = 1, more: object = {}): IngressTls => ({
  metadata: { name: 'common', uid: 'u', resourceVersion: '1', generation },
  spec: {
    ...{ sourceSecretRef: { namespace: 'ingress', name: 'tls' }, namespaces: ['*'], apiServerOIDC },
    ...more,
  },
});
const row = (startedAt?: string, finishedAt?: string): NodeStatus => ({
  ...{ name: 'n', address: 'a', phase: 'Unreachable' },
  ...(startedAt === undefined ? {} : { startedAt }),
  ...(finishedAt === undefined ? {} : { finishedAt }),
});
const [ONE, TWO] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'];

describe('what was begun', () => {
  test('is known by its times, whatever the phase says by now', () => {
    assert.deepEqual([row(), row(ONE), row(TWO, ONE), row(ONE, TWO), row(ONE, ONE)].map(isBegun), [
      false,
      true,
      true,
      false,
      false,
    ]);
  });

  test('is finished after apiServerOIDC was switched off, where nodes may still be reached', () => {
    const left = (oidc: object, nodes = [row(ONE)]) =>
      isLeftBegun(parseSpec(ingress(oidc)), { nodes }, ALLOWED);
    assert.equal(left({ ssh }), true);
    assert.equal(left({ ssh }, [row(ONE, TWO)]), false);
    assert.equal(left({ ssh, enabled: true }), false, 'then it is no leftover');
    assert.equal(left({}), false);
    assert.equal(left({ ssh, destCAPath: '/etc/passwd' }), false);
  });

  test('is overtaken by another source, or by another spec by which nodes can be gone on with', () => {
    const first = ingress({ ssh, enabled: true });
    const spec = parseSpec(first);
    let [latest, version]: [IngressTls | undefined, string] = [first, '1'];
    const watches = {
      secretsNamed: () => ({ get: () => ({ resourceVersion: version }) }),
      ingresses: { get: () => latest },
    } as never;
    const isOutdated = watchChanges(first, spec, { watches, allowed: ALLOWED });
    assert.equal(isOutdated(), false);
    version = '2';
    assert.equal(isOutdated(), true);
    version = '1';
    for (const [next, expected] of [
      [ingress({ ssh, enabled: true }, 2), true],
      [ingress({ ssh }, 2), true],
      [ingress({}, 2), false],
      [ingress({ ssh, enabled: true, destCAPath: '/etc/passwd' }, 2), false],
      [ingress({ ssh, enabled: true }, 2, { namespaces: [] }), false],
      [undefined, false],
    ] as const) {
      latest = next;
      assert.equal(isOutdated(), expected, JSON.stringify(next));
    }
  });
});
