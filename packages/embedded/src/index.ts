export * from './servers/index.ts';
