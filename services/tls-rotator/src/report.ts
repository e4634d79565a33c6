import type { TlsReport } from '@colonnade/contracts';
import type { IngressTls } from './spec.ts';
import type { Status } from './status.ts';

/** The status of an IngressTLS for whoever asks over the bus. What the API server let through is taken as it is. */
export function reportOf({ metadata, spec, status = {} }: IngressTls): TlsReport {
  const { sourceSecretRef, paused = false } = spec as {
    sourceSecretRef: { namespace: string; name: string };
    paused?: boolean;
  };
  const {
    source,
    conditions = [],
    targets = {},
    failures = [],
    nodes = [],
    trust,
    observedGeneration = 0,
  } = status as Status;
  return {
    ...{
      name: metadata.name,
      paused,
      generation: metadata.generation ?? 0,
      observed_generation: observedGeneration,
    },
    source: {
      ...{ namespace: sourceSecretRef.namespace, name: sourceSecretRef.name },
      ...(source === undefined ? {} : { fingerprint: source.fingerprint, not_after: source.notAfter }),
    },
    conditions: conditions.map(({ type, status: is, reason, message, lastTransitionTime }) => ({
      ...{ type, status: is, reason, message, since: lastTransitionTime },
    })),
    targets: { ...targets },
    failures: [...failures],
    nodes: nodes.map(({ name, address, phase, message = '', caHash = '', finishedAt = '' }) => ({
      ...{ name, address, phase, message, ca_hash: caHash, finished_at: finishedAt },
    })),
    ...(trust?.dropOldAt === undefined ? {} : { drop_old_at: trust.dropOldAt }),
  };
}
