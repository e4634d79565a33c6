export type * from './port.ts';
export { openSqliteReader, openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';
