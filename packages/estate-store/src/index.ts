export type { ArchiveTable } from './copy/archive.ts';
export { type CopyOptions, type CopyReport, copyStore, type EstatePlace } from './copy/copy-store.ts';
export { apiRole, mergerRole, type RoleCommand } from './mongo/roles.ts';
export { type MongoStoreOptions, openMongoReader, openMongoStore } from './mongo/store.ts';
export type * from './port.ts';
export { openSqliteReader, openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';
