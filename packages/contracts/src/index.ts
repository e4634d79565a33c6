export * from './codec.ts';
export * from './enc.ts';
export * from './errors.ts';
export * from './limits.ts';
export * from './names.ts';
export * from './pillarenv.ts';
