export { type AuditSinkConfig, auditSinkSettings, readAuditSinkConfig } from './config.ts';
export { type AuditSink, type AuditSinkDeps, createAuditSink } from './service.ts';
