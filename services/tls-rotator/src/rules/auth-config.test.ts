import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIssuerCa, readLoadedHash, writeIssuerCa } from './auth-config.ts';

const OLD = '-----BEGIN CERTIFICATE-----\nAAA=\n-----END CERTIFICATE-----\n';
const NEW = '-----BEGIN CERTIFICATE-----\nBBB=\n-----END CERTIFICATE-----\n';
const url = 'https://dex.example';
const CONFIG = `# of our installer
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
  - issuer: { url: https://other.example, audiences: [ a ] } # not ours
  - issuer:
      url: https://dex.example
      audiences: [ kubernetes ]
      certificateAuthority: |
        ${OLD.trimEnd().replaceAll('\n', '\n        ')}
    claimMappings:
      username: { claim: sub, prefix: "oidc:" }
anonymous: { enabled: false }
`;

test('the CA of one issuer is replaced, and all else stays', () => {
  assert.equal(readIssuerCa(CONFIG, url), OLD);
  const text = writeIssuerCa(CONFIG, url, NEW);
  assert.equal(readIssuerCa(text, url), NEW);
  assert.equal(text, CONFIG.replace('AAA=', 'BBB='));
});

test('an issuer without a CA gets one, also in a file of JSON', () => {
  for (const config of [CONFIG.replace('https://dex.example', 'https://x.example'), json()]) {
    const issuer = 'https://other.example';
    assert.equal(readIssuerCa(config, issuer), '');
    assert.equal(readIssuerCa(writeIssuerCa(config, issuer, NEW), issuer), NEW);
  }
  function json() {
    return JSON.stringify({
      kind: 'AuthenticationConfiguration',
      jwt: [{ issuer: { url: 'https://other.example' } }],
    });
  }
});

test('what is no such file, or does not know the issuer, is refused', () => {
  for (const bad of ['', 'a: [', 'kind: Pod', 'kind: AuthenticationConfiguration', OLD, '[]', '1', 'null'])
    assert.throws(() => writeIssuerCa(bad, url, NEW), { code: 'unprocessable' }, bad);
  assert.throws(() => readIssuerCa(CONFIG, 'https://dex.example/'), { code: 'unprocessable' });
});

test('the hash of what an API server runs with is read from its metrics', () => {
  const hash = 'a'.repeat(64);
  const name = 'apiserver_authentication_config_controller_last_config_info';
  assert.equal(
    readLoadedHash(`${name}{apiserver_id_hash="sha256:${'b'.repeat(64)}",hash="sha256:${hash}"} 1`),
    hash,
  );
  assert.equal(readLoadedHash(`${name}{hash="sha256:${hash}",x="y"} 1`), hash);
  for (const other of [`# HELP ${name} …`, `${name}{hash=""} 1`, `x${name}{hash="sha256:${hash}"} 1`])
    assert.equal(readLoadedHash(other), undefined);
});
