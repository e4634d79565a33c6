export { readTlsRotatorConfig, type TlsRotatorConfig, tlsRotatorSettings } from './config.ts';
export { createTlsRotator, type TlsRotator } from './service.ts';
