import { randomUUID } from 'node:crypto';
import type { Value } from '@colonnade/value';
import { z } from 'zod';
import { int } from './codec.ts';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { buildOwnEvent, type CloudEvent } from './events.ts';

/** What the rotation of TLS material tells on the stream EVENTS (seed 004). The subject ends in the same words. */
export const TLS_EVENT_TYPES = [
  'tls.secrets_synced',
  'tls.node_rotated',
  'tls.rollout_stopped',
  'tls.source_refused',
  'tls.expires_soon',
  'tls.recovered',
] as const;
export type TlsEventType = (typeof TLS_EVENT_TYPES)[number];

/** CloudEvents `source`: they have no place in the order of the estate's changes. */
export const TLS_SOURCE = 'urn:colonnade:tls';

/**
 * An event about one IngressTLS.
 * @param about name and UID of the IngressTLS
 */
export function buildTlsEvent(
  type: TlsEventType,
  about: { name: string; uid: string },
  data: Value,
  time = new Date().toISOString(),
): CloudEvent {
  const { name, uid } = about;
  return buildOwnEvent({
    ...{ type, id: randomUUID(), source: TLS_SOURCE },
    ...{ subject: name, incarnation: uid, time, data },
  });
}

/** Name of an IngressTLS, as Kubernetes takes it. */
const zTlsName = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/u, 'is no name of an IngressTLS');
const zFailure = z.strictObject({ namespace: z.string(), reason: z.string() });
const zCounts = z.record(z.string(), int({ min: 0 }));

/** The status of one IngressTLS as the rotator has written it; times are those of Kubernetes, RFC 3339. */
export const zTlsReport = z.strictObject({
  name: z.string(),
  paused: z.boolean(),
  /** Of the spec, and of the spec that the status is about. */
  generation: int({ min: 0 }),
  observed_generation: int({ min: 0 }),
  source: z.strictObject({
    namespace: z.string(),
    name: z.string(),
    /** SHA-256 of the leaf, and when the first certificate of its chain expires; absent: none was ever good. */
    fingerprint: z.string().optional(),
    not_after: z.string().optional(),
  }),
  conditions: z.array(
    z.strictObject({
      type: z.string(),
      status: z.enum(['True', 'False', 'Unknown']),
      reason: z.string(),
      message: z.string(),
      since: z.string(),
    }),
  ),
  targets: zCounts,
  /** The first few. */
  failures: z.array(zFailure),
  nodes: z.array(
    z.strictObject({
      name: z.string(),
      address: z.string(),
      phase: z.string(),
      message: z.string(),
      /** SHA-256 of the file with the CA. */
      ca_hash: z.string(),
      finished_at: z.string(),
    }),
  ),
  /** When old CAs are dropped; absent: not waited for. */
  drop_old_at: z.string().optional(),
});
export type TlsReport = z.infer<typeof zTlsReport>;

/** What every IngressTLS says, or one. Errors: `not_found`, `unavailable` (the API server has not been listed yet). */
export const tlsStatus = defineEndpoint({
  subject: subjectOf('tls', 'status'),
  server: 'tls-rotator',
  callers: ['operator'],
  request: z.strictObject({ name: zTlsName.optional() }),
  response: z.strictObject({
    /** Holder of the Lease; null: nobody leads now, so nothing is done. */
    leader: z.string().nullable(),
    items: z.array(zTlsReport),
  }),
});

/** `finish`: work that was begun; `wait`: not now, and why; `stop`: a person has to look first. */
export const TLS_STEPS = [
  'restart',
  'reload',
  'write-key',
  'finish',
  'wait',
  'stop',
  'unreachable',
  'update',
  'create',
  'drop',
] as const;
export const zTlsStep = z.strictObject({
  kind: z.enum(['node', 'secret', 'old-ca']),
  /** Of a node its name, of a Secret its namespace. */
  name: z.string(),
  does: z.enum(TLS_STEPS),
  why: z.string(),
});
export type TlsStep = z.infer<typeof zTlsStep>;

/** Steps in one plan; more are counted. */
export const TLS_PLAN_STEPS = 5000;

export const zTlsPlan = z.strictObject({
  name: z.string(),
  /** Why a pass would not come to its end now, as a condition would have it; empty: it would. */
  blocked: z.strictObject({ reason: z.string(), message: z.string() }).nullable(),
  /** In the order in which they would be done. */
  steps: z.array(zTlsStep).max(TLS_PLAN_STEPS),
  steps_left_off: int({ min: 0 }),
  /** Nodes that need nothing, and what would be said of the Secrets. */
  nodes_done: int({ min: 0 }),
  targets: zCounts,
  failures: z.array(zFailure),
});
export type TlsPlan = z.infer<typeof zTlsPlan>;

/**
 * What a pass over one IngressTLS would do now; nothing is written, in Kubernetes or on a node. The nodes are looked at by
 * SSH. Errors: `not_found`, `unavailable`, `overloaded`.
 */
export const tlsPlan = defineEndpoint({
  subject: subjectOf('tls', 'plan'),
  server: 'tls-rotator',
  callers: ['operator'],
  request: z.strictObject({ name: zTlsName }),
  response: zTlsPlan,
});
