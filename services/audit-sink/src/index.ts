export type { EventFilter, ParsedEvent } from './backends/backend.ts';
export { type AuditSinkConfig, auditSinkSettings, readAuditSinkConfig } from './config.ts';
export { findEvents, type Query } from './reader/find.ts';
export { type Fault, type Verification, verifyLog } from './reader/verify.ts';
export { type AuditSink, type AuditSinkDeps, createAuditSink } from './service.ts';
