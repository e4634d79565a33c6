export { type KmsConfig, kmsSettings, readKmsConfig } from './config.ts';
export { createKms, type Kms } from './service.ts';
