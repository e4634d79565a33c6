export {
  type AuditOutcome,
  type Auditor,
  type AuditRequest,
  type AuditSpan,
  type AuditUser,
  createAuditor,
} from './auditor.ts';
export { microTime } from './micro-time.ts';
export * from './policy/index.ts';
