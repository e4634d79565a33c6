import { z } from 'zod';
import { decodeTree, int, parseMessage, zValue } from './codec.ts';
import { type BusUser, subjectOf } from './endpoints.ts';
import { LIMITS } from './limits.ts';

export const AUDIT_STREAM = 'AUDIT';
export const AUDIT_SUBJECTS = subjectOf('audit', '>');

/** Every service writes under its own name, and may write under no other. */
export function auditSubject(service: BusUser): string {
  return subjectOf('audit', service);
}

/** Seed 001: the stages and levels of audit.k8s.io/v1. */
export const AUDIT_STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type AuditStage = (typeof AUDIT_STAGES)[number];

const AUDIT_ID = /^[\x21-\x7e]{1,64}$/u;

/** An Audit-ID that somebody else has chosen: 1–64 visible ASCII characters, which fit a header. */
export function isAuditId(text: unknown): text is string {
  return typeof text === 'string' && AUDIT_ID.test(text);
}
export const AUDIT_LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
/** API group and version of everything Colonnade's own records and policies name. */
export const AUDIT_API_GROUP = 'colonnade';
export const AUDIT_API_VERSION = 'v1';
/** Set to `true` on a record whose bodies were left out because it was too large, as Kubernetes does. */
export const AUDIT_TRUNCATED = 'audit.k8s.io/truncated';
/** On a record of the bus: the user on whose behalf the service that asked did so, as that service says. */
export const AUDIT_ON_BEHALF_OF = 'colonnade/on-behalf-of';
/** Set to `true` on what is recorded whatever a policy says (README of packages/audit, "The floor"), and on gaps. */
export const AUDIT_FLOOR = 'colonnade/floor';

export const zObjectRef = z.strictObject({
  resource: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  uid: z.string().optional(),
  apiGroup: z.string().optional(),
  apiVersion: z.string().optional(),
  subresource: z.string().optional(),
});
export type ObjectRef = z.infer<typeof zObjectRef>;

/** One audit.k8s.io/v1 Event. */
export const zAuditEvent = z.strictObject({
  kind: z.literal('Event'),
  apiVersion: z.literal('audit.k8s.io/v1'),
  level: z.enum(AUDIT_LEVELS),
  auditID: z.string(),
  stage: z.enum(AUDIT_STAGES),
  requestURI: z.string(),
  verb: z.string(),
  user: z.strictObject({ username: z.string().optional(), groups: z.array(z.string()).optional() }),
  sourceIPs: z.array(z.string()).optional(),
  userAgent: z.string().optional(),
  objectRef: zObjectRef.optional(),
  responseStatus: z
    .strictObject({
      code: int().optional(),
      status: z.string().optional(),
      reason: z.string().optional(),
      message: z.string().optional(),
    })
    .optional(),
  requestObject: zValue.optional(),
  responseObject: zValue.optional(),
  /** RFC 3339 with microseconds, as Kubernetes writes them. */
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
  annotations: z.record(z.string(), z.string()).optional(),
});
export type AuditEvent = z.infer<typeof zAuditEvent>;

/** Several records in one message: one acknowledgement, and on the server one write to disk, for all of them. */
export const zAuditEventList = z.strictObject({
  kind: z.literal('EventList'),
  apiVersion: z.literal('audit.k8s.io/v1'),
  metadata: z.strictObject({}).optional(),
  items: z.array(zAuditEvent).min(1),
});

/**
 * The records of one message of the stream AUDIT: an Event, or an EventList of them.
 * @throws ColonnadeError `bad_request` when it is neither
 */
export function decodeAuditMessage(payload: Uint8Array): readonly AuditEvent[] {
  // A body may be as deep as a message, and lies three levels below the list.
  const tree = parseMessage(payload, { maxDepth: LIMITS.messageDepth + 8 });
  const isList = typeof tree === 'object' && tree !== null && 'kind' in tree && tree.kind === 'EventList';
  return isList ? decodeTree(zAuditEventList, tree).items : [decodeTree(zAuditEvent, tree)];
}
