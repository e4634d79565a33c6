export { type ApiAnswer, type ApiClient, createApiClient } from '@colonnade/api-client';
export {
  type AskBridge,
  type BridgeClient,
  type BridgeClientOptions,
  connectBridge,
} from './bridge-client.ts';
export { keepRunning } from './keep-running.ts';
export { admitMaster, loadSample, type MasterCredentials, registerMaster } from './sample/load.ts';
export {
  type ServiceOptions,
  type ServiceProcess,
  startService,
} from './service-process.ts';
export { type LaunchedService, type Stack, type StackOptions, startStack } from './stack.ts';
