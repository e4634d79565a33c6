import type { Document } from 'mongodb';
import { TABLE_NAMES, type Tables } from './connection.ts';

/** A `createRole` command; run it in the estate's database. */
export type RoleCommand = {
  createRole: string;
  privileges: { resource: { db: string; collection: string }; actions: string[] }[];
  roles: never[];
} & Document;

type Actions = Partial<Record<keyof Tables, readonly string[]>>;

const ALL = ['find', 'insert', 'update', 'remove'];
const QUEUE = ['find', 'insert', 'remove'];
const KEEP = ['find', 'insert', 'update'];

const API: Actions = {
  ...{ pillars: ALL, collections: ALL, masters: ALL, minions: ALL, tokens: ALL, writers: ALL },
  ...{ versions: ALL, outbox: QUEUE, changes: QUEUE, answers: KEEP, leases: KEEP, meta: KEEP },
  ...{ templates: ALL, tasks: ALL, imports: ALL, inventories: ALL, services: ALL },
};

const READ = ['find'];

/** No API tokens, no history, no outbox. */
const MERGER: Actions = {
  ...{ pillars: READ, collections: READ, masters: READ, minions: READ, changes: READ, meta: READ },
  tasks: READ,
};

/** The least rights of `openMongoStore`: pillar-api. It also makes collections and indexes. */
export function apiRole(database: string): RoleCommand {
  const make = ['createCollection', 'createIndex', 'listIndexes'];
  const command = roleCommand('colonnade_api', database, API, make);
  command.privileges.push({ resource: { db: database, collection: '' }, actions: ['listCollections'] });
  return command;
}

/** The least rights of `openMongoReader`: pillar-merger. */
export function mergerRole(database: string): RoleCommand {
  return roleCommand('colonnade_merger', database, MERGER, []);
}

function roleCommand(name: string, db: string, tables: Actions, more: readonly string[]): RoleCommand {
  const privileges = Object.entries(tables).map(([table, actions]) => ({
    resource: { db, collection: TABLE_NAMES[table as keyof Tables] },
    actions: [...actions, ...more],
  }));
  return { createRole: name, privileges, roles: [] };
}
