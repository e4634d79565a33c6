export { readPillarApiConfig, settings as pillarApiSettings } from './config.ts';
export { createPillarApi } from './service.ts';
