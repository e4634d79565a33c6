import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { type BusUser, subjectOf } from './endpoints.ts';

export const AUDIT_STREAM = 'AUDIT';
export const AUDIT_SUBJECTS = subjectOf('audit', '>');

/** Every service writes under its own name, and may write under no other. */
export function auditSubject(service: BusUser): string {
  return subjectOf('audit', service);
}

/** Seed 001: the stages and levels of audit.k8s.io/v1. */
export const AUDIT_STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type AuditStage = (typeof AUDIT_STAGES)[number];
export const AUDIT_LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;

export const zObjectRef = z.strictObject({
  resource: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
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
