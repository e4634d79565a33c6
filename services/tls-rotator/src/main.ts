import { runService } from '@colonnade/service-kit';
import { readTlsRotatorConfig } from './config.ts';
import { createTlsRotator } from './service.ts';

await runService({
  name: 'tls-rotator',
  start: async (env, logger) => createTlsRotator(readTlsRotatorConfig(env), { logger }),
});
