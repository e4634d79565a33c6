export { attributesOf, mergeRef, type PillarFacts, pillarRef } from './event/attributes.ts';
export {
  type Auditor,
  type AuditorOptions,
  type AuditRecorder,
  type AuditSpan,
  createAuditor,
} from './event/auditor.ts';
export { type Backlog, type BacklogOptions, createBacklog } from './event/backlog.ts';
export { microTime } from './event/micro-time.ts';
export type { AuditOutcome, AuditRequest, AuditUser } from './event/request.ts';
export { type AuditWatch, createAuditWatch } from './event/watch.ts';
export * from './http/index.ts';
export { type OpenAuditor, type OpenAuditorOptions, openAuditor } from './open-auditor.ts';
export * from './policy/index.ts';
export { auditPolicySettings, auditSettings } from './settings.ts';
