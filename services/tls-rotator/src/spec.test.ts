import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Allowed, readSpec } from './spec.ts';

const ALLOWED: Allowed = {
  sourceNamespaces: ['ingress'],
  pathPrefixes: ['/etc/kubernetes/'],
  nodeAddresses: { check: (address) => address === '10.0.0.1' },
};
const ssh = { keySecretRef: { name: 'k' }, knownHostsSecretRef: { name: 'h' } };
const read = (oidc: object, namespace = 'ingress') =>
  readSpec(
    {
      metadata: { name: 'x', uid: 'u', resourceVersion: '1' },
      spec: {
        ...{ sourceSecretRef: { namespace, name: 'tls' }, namespaces: ['*'] },
        apiServerOIDC: { enabled: true, ssh, ...oidc },
      },
    },
    ALLOWED,
  );

test('a spec is held against what the settings allow', () => {
  assert.equal(read({}).apiServerOIDC.destCAPath, '/etc/kubernetes/pki/ingress-ca.crt');
  const key = (path: string) => ({ writeKey: { enabled: true, path } });
  for (const [oidc, code, message] of [
    [{ destCAPath: '/etc/passwd' }, 'forbidden', /ALLOWED_NODE_PATHS does not allow \/etc\/passwd/u],
    [key('/opt/key'), 'forbidden', /ALLOWED_NODE_PATHS/u],
    [{ nodes: { list: [{ name: 'n', address: '10.0.0.2' }] } }, 'forbidden', /ALLOWED_NODE_ADDRESSES/u],
    [key('/etc/kubernetes/pki/ingress-ca.crt'), 'unprocessable', /writeKey\.path is the file of the CA/u],
    [
      { destCAPath: '/etc/kubernetes/manifests/kube-apiserver.yaml' },
      'unprocessable',
      /folder of the manifest/u,
    ],
    [key('/etc/kubernetes/manifests/other.yaml'), 'unprocessable', /folder of the manifest/u],
    [{ destCAPath: '/etc/kubernetes/colonnade-tls/journal' }, 'unprocessable', /or in ours/u],
    [
      { reload: { enabled: true, issuerURL: 'https://x', configPath: '/etc/kubernetes/manifests/a.yaml' } },
      'unprocessable',
      /folder of the manifest/u,
    ],
  ] as const)
    assert.throws(() => read(oidc), { code, message }, JSON.stringify(oidc));
  assert.throws(() => read({}, 'elsewhere'), { code: 'forbidden', message: /ALLOWED_SOURCE_NAMESPACES/u });
});
