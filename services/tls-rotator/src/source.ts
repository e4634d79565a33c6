import { toColonnadeError } from '@colonnade/contracts';
import type { KubeClient } from './kube/client.ts';
import { type Secret, secretPath } from './kube/objects.ts';
import { checkSource, type SourceFacts } from './rules/certificates.ts';
import type { TargetData } from './secrets/target.ts';
import type { Spec } from './spec.ts';

export type Source = {
  facts: SourceFacts;
  /** As they stand in the source, base64: targets get exactly these bytes. */
  data: TargetData;
  /** Of writeKey, where that is wanted. */
  caKey: string | undefined;
};

export type SourceResult = { ok: true; source: Source } | { ok: false; reason: string; message: string };

/**
 * Reads and checks the source Secret. Nothing of it is kept beyond one pass.
 * @throws ColonnadeError `unavailable` and the like: it cannot be told what the source is
 */
export async function readSource(client: KubeClient, spec: Spec): Promise<SourceResult> {
  const { namespace, name } = spec.sourceSecretRef;
  const where = `${namespace}/${name}`;
  const secret = await client.request<Secret>('GET', secretPath(namespace, name)).catch((thrown) => {
    const error = toColonnadeError(thrown);
    if (error.code === 'not_found') return undefined;
    if (error.code === 'forbidden') return 'forbidden';
    throw error;
  });
  if (secret === 'forbidden')
    return { ok: false, reason: 'SourceForbidden', message: `${where} may not be read: ${GRANT}` };
  if (secret === undefined || secret.metadata.deletionTimestamp !== undefined)
    return { ok: false, reason: 'SourceMissing', message: `there is no Secret ${where}` };
  return judge(secret, spec, where);
}

/** What is missing where the API server says no. */
export const GRANT = "the rotator's ClusterRole (rbac.yaml) has to name that Secret";

function judge({ data = {} }: Secret, { apiServerOIDC }: Spec, where: string): SourceResult {
  const { enabled, caKey, writeKey } = apiServerOIDC;
  const wanted = [
    'tls.crt',
    'tls.key',
    ...(enabled ? [caKey] : []),
    ...(enabled && writeKey.enabled ? [writeKey.key] : []),
  ];
  const absent = wanted.filter((key) => !data[key]);
  if (absent.length > 0)
    return { ok: false, reason: 'SourceIncomplete', message: `${where} has no ${absent.join(', ')}` };
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('utf8');
  // The bundle is checked also where no node needs it: a chain is only whole if it ends somewhere.
  const ca = data[caKey] === undefined ? undefined : text(caKey);
  const extraKey = enabled && writeKey.enabled ? text(writeKey.key) : undefined;
  const verdict = checkSource({ crt: text('tls.crt'), key: text('tls.key'), ca, extraKey }, Date.now());
  if (!verdict.ok) {
    const message = verdict.faults.map(({ check, reason }) => `${check}: ${reason}`).join('; ');
    return { ok: false, reason: 'SourceInvalid', message };
  }
  return {
    ok: true,
    source: {
      facts: verdict.facts,
      data: { 'tls.crt': data['tls.crt'] as string, 'tls.key': data['tls.key'] as string },
      caKey: extraKey,
    },
  };
}
