export * from './collections.ts';
export * from './common.ts';
export * from './explain.ts';
export * from './history.ts';
export * from './masters.ts';
export * from './pillars.ts';
export * from './secret-fields.ts';
export * from './tokens.ts';
