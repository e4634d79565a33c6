export {
  type Described,
  describeRequest,
  eventRefOfBody,
  explainRefOfBody,
  pillarRefOfBody,
  type RouteFacts,
} from './describe.ts';
export { maskBody } from './mask.ts';
export { AUDIT_MODES, type AuditMode } from './modes.ts';
export { type AuditPlugin, type AuditPluginOptions, auditPlugin, type RouteAudit } from './plugin.ts';
