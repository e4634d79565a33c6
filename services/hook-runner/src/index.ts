export { type HookRunnerConfig, hookRunnerSettings, readHookRunnerConfig } from './config.ts';
export { createHookRunner, type HookRunner } from './service.ts';
