import { runService } from '@colonnade/service-kit';
import { readPillarApiConfig } from './config.ts';
import { createPillarApi } from './service.ts';

await runService({
  name: 'pillar-api',
  start: (env, logger) => createPillarApi(readPillarApiConfig(env), logger),
});
