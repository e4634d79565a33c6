import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { canonicalText, type ValueObject } from '@colonnade/value';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { type Kube, startKube } from '../../../test/support/kube.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { normalise, parseLoosely } from '../src/ingest/normalise.ts';
import { prepareSink, readLines } from './support.ts';

/** Every level, and the stages of long-running requests. */
const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - level: None
    users: ["system:apiserver"]
  - level: Metadata
    resources: [{ group: "", resources: ["secrets"] }]
  - level: RequestResponse
    resources: [{ group: "" }, { group: "apiextensions.k8s.io" }]
  - level: Metadata
`;

/** What clients do: writes of every kind, refusals, a watch, bodies that are hard to keep. */
async function useKube(kube: Kube): Promise<void> {
  const configmap = (name: string, data: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data,
  });
  const at = '/api/v1/namespaces/audited/configmaps';
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'audited' } };
  assert.equal((await kube.call('POST', '/api/v1/namespaces', { body: namespace })).status, 201);
  for (let i = 0; i < 40; i += 1) {
    const data = { html: `<a href="x&y">${i}</a>`, lines: 'a\nb\u2028c\u2029d', text: 'ü😀'.repeat(i) };
    assert.equal((await kube.call('POST', at, { body: configmap(`c${i}`, data) })).status, 201);
  }
  await kube.call('GET', `${at}?limit=5`);
  await kube.call('GET', `${at}?watch=true&timeoutSeconds=1`);
  await kube.call('GET', '/api/v1/namespaces/audited/configmaps/absent');
  await kube.call('GET', '/api/v1/secrets', { token: 'nobody-token' });
  await kube.call('GET', '/api/v1/nodes', { token: 'wrong' });
  await kube.call('GET', '/version', { token: null });
  await kube.call('POST', at, { body: '{"apiVersion":"v1", oops' });
  const patch = { type: 'application/merge-patch+json' };
  // What a client may send and a strict parser refuses: a repeated key, a lone surrogate, a number beyond 64 bits.
  await kube.call('PATCH', `${at}/c1`, { ...patch, body: '{"data":{"a":"1","a":"2","b":"\\ud800"}}' });
  await kube.call('PATCH', `${at}/c2`, {
    ...patch,
    body: '{"metadata":{"generation":123456789012345678901234567890}}',
  });
  await kube.call('DELETE', `${at}/c3`);
}

describe('a real kube-apiserver', { skip: skipWithoutKube() }, () => {
  test('its own log and what it hands to our endpoint agree, event by event', {
    timeout: 180_000,
  }, async () => {
    await using sink = await prepareSink({
      maxAuditBytes: 64 * 1024 * 1024,
      maxFileBytes: 256 * 1024 * 1024,
    });
    const authority = await makeAuthority(sink.dir, 'ingest');
    const server = await authority.issue('sink');
    const client = await authority.issue('kube-apiserver');
    await using running = await sink.start({
      INGEST_PORT: '0',
      INGEST_TLS_CERT_FILE: server.certFile,
      INGEST_TLS_KEY_FILE: server.keyFile,
      INGEST_CLIENT_CA_FILE: authority.certFile,
      INGEST_CLIENT_NAMES: 'kube-apiserver',
    });
    const kubeconfig = await writeKubeconfig(
      sink.dir,
      { server: running.ingestUrl, 'certificate-authority': authority.certFile },
      { 'client-certificate': client.certFile, 'client-key': client.keyFile },
    );
    await using kube = await startKube({
      auditPolicy: POLICY,
      tokens: { 'nobody-token': { user: 'nobody', groups: ['strangers'] } },
      flags: [
        `--audit-webhook-config-file=${kubeconfig}`,
        '--audit-webhook-batch-max-wait=500ms',
        '--audit-webhook-batch-throttle-enable=false',
        '--audit-webhook-batch-buffer-size=100000',
        '--audit-webhook-initial-backoff=200ms',
      ],
    });
    await useKube(kube);
    await kube.stopApiserver();
    const theirs = (await readFile(kube.auditLog, 'utf8')).trimEnd().split('\n').map(read);
    const ours = await waitFor(
      'all of their events',
      async () => {
        const events = (await readLines(sink.logPath)).map(read);
        return events.length >= theirs.length ? events : undefined;
      },
      { limitMs: 30_000 },
    );
    assert.ok(theirs.length > 100, `only ${theirs.length} events`);
    assert.deepEqual(ours.map(shown).sort(), theirs.map(shown).sort());
    const marked = ours.filter((e) => (e.annotations as ValueObject | undefined)?.['colonnade/normalised']);
    assert.ok(
      marked.length > 0 && marked.length < 5,
      `${marked.length} events are marked as not kept exactly`,
    );
    assert.deepEqual(await sink.deadLetters(), []);
  });
});

/** Their log holds what our values cannot: a client's lone surrogate for one. Both are brought into range alike. */
function read(line: string): ValueObject {
  return normalise(parseLoosely(line), 500) as ValueObject;
}

/** An event as text, without our mark on lists that had to be brought into range. */
function shown(event: ValueObject): string {
  const { annotations, ...rest } = event;
  const { 'colonnade/normalised': mark, ...others } = (annotations ?? {}) as ValueObject;
  void mark;
  const kept = Object.keys(others).length > 0 ? { ...rest, annotations: others } : rest;
  return canonicalText(kept);
}
