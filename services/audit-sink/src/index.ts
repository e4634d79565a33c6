export { type AuditSinkConfig, auditSinkSettings, readAuditSinkConfig } from './config.ts';
export { type AuditSink, createAuditSink } from './service.ts';
