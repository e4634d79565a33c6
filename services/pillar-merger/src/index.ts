export { type MergerConfig, mergerSettings, readMergerConfig } from './config.ts';
export { createMerger, type Merger } from './service.ts';
