import type {
  ChangeKey,
  Clock,
  CollectionRecord,
  EstateQuery,
  EstateSnapshot,
  PillarRecord,
} from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { createCollectionTree } from './collection-tree.ts';
import { COLLECTIONS_KEY, masterKey, minionKey, type Piece, scopeKey, taskKey } from './estate-view.ts';

/** A piece with the bytes it takes in memory, roughly. */
export type LoadedPiece = { key: ChangeKey; piece: Piece; bytes: number };

/** The query that fetches the pieces with these keys. */
export function queryFor(since: Clock | undefined, keys: readonly ChangeKey[]): EstateQuery {
  const names = (prefix: string) =>
    keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  return {
    since,
    scopes: names('scope:'),
    collections: keys.includes(COLLECTIONS_KEY),
    masters: names('master:'),
    minions: names('minion:').map(splitMinion),
    tasks: names('task:'),
  };
}

/** A master id holds no slash, so the first one ends it. */
function splitMinion(name: string): { master: string; id: string } {
  const at = name.indexOf('/');
  return { master: name.slice(0, at), id: name.slice(at + 1) };
}

/** The pieces of an answer. What was asked for and is not there is a piece too: that it is not there. */
export function piecesOf(query: EstateQuery, snapshot: EstateSnapshot): readonly LoadedPiece[] {
  const scopes = query.scopes.map((scope): LoadedPiece => {
    const records = snapshot.scopes.get(scope) ?? [];
    return { key: scopeKey(scope), piece: { kind: 'scope', records }, bytes: scopeBytes(scope, records) };
  });
  const masters = query.masters.map((id): LoadedPiece => {
    const record = snapshot.masters.get(id);
    return { key: masterKey(id), piece: { kind: 'master', record }, bytes: 4 * ENTRY_BYTES };
  });
  const minions = query.minions.map(({ master, id }): LoadedPiece => {
    const record = snapshot.minions.get(`${master}/${id}`);
    const bytes = ENTRY_BYTES * (4 + (record?.collections.length ?? 0));
    return { key: minionKey(master, id), piece: { kind: 'minion', record }, bytes };
  });
  const tasks = (query.tasks ?? []).map((id): LoadedPiece => {
    const record = snapshot.tasks.get(id);
    const targets = (record?.minions.length ?? 0) + (record?.collections.length ?? 0);
    return { key: taskKey(id), piece: { kind: 'task', record }, bytes: ENTRY_BYTES * (8 + 4 * targets) };
  });
  return [...scopes, ...masters, ...minions, ...tasks, ...collectionsPiece(snapshot.collections)];
}

function collectionsPiece(records: readonly CollectionRecord[] | undefined): readonly LoadedPiece[] {
  if (records === undefined) return [];
  const piece: Piece = { kind: 'collections', tree: createCollectionTree(records) };
  return [{ key: COLLECTIONS_KEY, piece, bytes: ENTRY_BYTES * (4 + 8 * records.length) }];
}

/** A guess for an object, a map entry or a short text. */
const ENTRY_BYTES = 64;

function scopeBytes(scope: string, records: readonly PillarRecord[]): number {
  const rows = records.map(
    (r) => 12 * ENTRY_BYTES + 2 * (r.name.length + r.tgtId.length) + valueBytes(r.value),
  );
  return rows.reduce((sum, bytes) => sum + bytes, 4 * ENTRY_BYTES + 2 * scope.length);
}

function valueBytes(value: Value): number {
  if (typeof value === 'string') return 16 + 2 * value.length;
  if (typeof value !== 'object' || value === null) return 16;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + valueBytes(item), 32);
  return Object.entries(value).reduce(
    (sum, [key, item]) => sum + 2 * key.length + valueBytes(item),
    ENTRY_BYTES,
  );
}
