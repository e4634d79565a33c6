import { runService } from '@colonnade/service-kit';
import { readMergerConfig } from './config.ts';
import { createMerger } from './service.ts';

await runService({
  name: 'pillar-merger',
  start: async (env, logger) => createMerger(readMergerConfig(env), { logger }),
});
