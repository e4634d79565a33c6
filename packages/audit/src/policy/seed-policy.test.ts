import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compilePolicy } from './evaluate.ts';
import { loadPolicy } from './load.ts';
import type { AuditAttributes } from './types.ts';

/** The policy seed 001 explains the language with. */
const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
  - "RequestReceived"
rules:
  - level: RequestResponse
    resources:
    - group: ""
      resources: ["pods"]
  - level: Metadata
    resources:
    - group: ""
      resources: ["pods/log", "pods/status"]
  - level: None
    resources:
    - group: ""
      resources: ["configmaps"]
      resourceNames: ["controller-leader"]
  - level: None
    users: ["system:kube-proxy"]
    verbs: ["watch"]
    resources:
    - group: ""
      resources: ["endpoints", "services"]
  - level: None
    userGroups: ["system:authenticated"]
    nonResourceURLs:
    - "/api*"
    - "/version"
  - level: Request
    resources:
    - group: ""
      resources: ["configmaps"]
    namespaces: ["kube-system"]
  - level: Metadata
    resources:
    - group: ""
      resources: ["secrets", "configmaps"]
  - level: Request
    resources:
    - group: ""
    - group: "extensions"
  - level: Metadata
    omitStages:
      - "ResponseStarted"
`;

type Asked = Partial<Omit<AuditAttributes, 'user'>> & { user?: string; groups?: string[] };

function ask({ user = 'alice', groups = ['system:authenticated'], ...rest }: Asked): AuditAttributes {
  const isResource = rest.resource !== undefined;
  const nothing = {
    verb: 'get',
    apiGroup: '',
    resource: '',
    subresource: '',
    namespace: '',
    name: '',
    path: '',
  };
  return { ...nothing, isResource, ...rest, user: { name: user, groups } };
}

const TABLE: readonly (readonly [what: string, asked: Asked, level: string])[] = [
  ['a pod', { resource: 'pods', namespace: 'x' }, 'RequestResponse'],
  ['the log of a pod', { resource: 'pods', subresource: 'log' }, 'Metadata'],
  ['the status of a pod', { resource: 'pods', subresource: 'status' }, 'Metadata'],
  [
    'another subresource of a pod falls to the rule for the core group',
    { resource: 'pods', subresource: 'exec' },
    'Request',
  ],
  ['pods of another group', { resource: 'pods', apiGroup: 'metrics.k8s.io' }, 'Metadata'],
  ['the leader', { resource: 'configmaps', name: 'controller-leader', namespace: 'kube-system' }, 'None'],
  ['the proxy that watches', { user: 'system:kube-proxy', verb: 'watch', resource: 'services' }, 'None'],
  ['the proxy that gets', { user: 'system:kube-proxy', verb: 'get', resource: 'services' }, 'Request'],
  ['somebody else who watches', { verb: 'watch', resource: 'services' }, 'Request'],
  ['the API, by who is known', { path: '/api/v1' }, 'None'],
  ['the version, by who is known', { path: '/version' }, 'None'],
  ['below the version, which has no wildcard', { path: '/version/x' }, 'Metadata'],
  ['the version, by a stranger', { path: '/version', groups: ['system:unauthenticated'] }, 'Metadata'],
  ['a configmap of kube-system', { resource: 'configmaps', namespace: 'kube-system', name: 'x' }, 'Request'],
  ['a configmap elsewhere', { resource: 'configmaps', namespace: 'default', name: 'x' }, 'Metadata'],
  ['a secret of kube-system', { resource: 'secrets', namespace: 'kube-system' }, 'Metadata'],
  ['a node', { resource: 'nodes' }, 'Request'],
  ['an ingress of extensions', { resource: 'ingresses', apiGroup: 'extensions' }, 'Request'],
  ['an ingress of networking', { resource: 'ingresses', apiGroup: 'networking.k8s.io' }, 'Metadata'],
  ['a URL that no rule names', { path: '/metrics' }, 'Metadata'],
];

describe("the seed's sample policy", () => {
  const { policy, warnings } = loadPolicy(POLICY, { strict: true });
  const evaluator = compilePolicy(policy);

  for (const [what, asked, level] of TABLE) {
    test(`${what}: ${level}`, () => assert.equal(evaluator.evaluate(ask(asked)).level, level));
  }

  test('omits the stages of the policy and of the rule together', () => {
    assert.deepEqual(warnings, []);
    assert.deepEqual(evaluator.evaluate(ask({ resource: 'pods' })).omitStages, ['RequestReceived']);
    const last = evaluator.evaluate(ask({ path: '/metrics' }));
    assert.deepEqual(last.omitStages, ['RequestReceived', 'ResponseStarted']);
  });
});

test('without a rule that matches, nothing is recorded, and what the policy says still holds', () => {
  const text =
    'apiVersion: audit.k8s.io/v1\nomitManagedFields: true\nrules: [{level: Metadata, users: [bob]}]';
  const evaluator = compilePolicy(loadPolicy(text, { strict: true }).policy);
  assert.deepEqual(evaluator.evaluate(ask({ path: '/' })), {
    level: 'None',
    omitStages: [],
    omitManagedFields: true,
  });
  const unknown = { ...ask({ path: '/' }), user: undefined };
  assert.equal(evaluator.evaluate(unknown).level, 'None');
  assert.equal(evaluator.evaluate(ask({ user: 'bob' })).level, 'Metadata');
});
