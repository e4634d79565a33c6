import { runService } from '@colonnade/service-kit';
import { readAuditSinkConfig } from './config.ts';
import { createAuditSink } from './service.ts';

await runService({
  name: 'audit-sink',
  // Standard output belongs to the records when they go there.
  logFd: (env) => (env.AUDIT_LOG_PATH === '-' ? 2 : 1),
  start: async (env, logger) => createAuditSink(readAuditSinkConfig(env), { logger }),
});
