import { runService } from '@colonnade/service-kit';
import { readKmsConfig } from './config.ts';
import { createKms } from './service.ts';

await runService({
  name: 'crypto-kms',
  start: async (env, logger) => createKms(readKmsConfig(env), { logger }),
});
