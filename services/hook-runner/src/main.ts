import { runService } from '@colonnade/service-kit';
import { readHookRunnerConfig } from './config.ts';
import { createHookRunner } from './service.ts';

await runService({
  name: 'hook-runner',
  start: async (env, logger) => createHookRunner(readHookRunnerConfig(env), { logger, env }),
});
