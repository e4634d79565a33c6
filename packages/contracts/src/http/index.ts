export * from './changes.ts';
export * from './collections.ts';
export * from './common.ts';
export * from './explain.ts';
<<<<<<< HEAD
export * from './generations.ts';
=======
export * from './history.ts';
>>>>>>> main
export * from './import.ts';
export * from './inventories.ts';
export * from './limits.ts';
export * from './masters.ts';
export * from './pillars.ts';
export * from './revocations.ts';
export * from './search.ts';
export * from './secret-fields.ts';
export * from './tasks.ts';
export * from './tokens.ts';
