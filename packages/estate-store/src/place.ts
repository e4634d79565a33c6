import type { MongoOptions } from './mongo/options.ts';
import { openMongoReader, openMongoStore } from './mongo/store.ts';
import type { EstateReader, EstateStore } from './port.ts';
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts';

/** Where an estate is, or is to be. */
export type EstatePlace = { kind: 'sqlite'; path: string } | ({ kind: 'mongodb' } & MongoOptions);

/**
 * Reads `sqlite:///path` or `mongodb://host:port,…/database?options` (`mongodb+srv://` too).
 * @throws Error that says what is wrong and does not repeat the text, which may hold a password by mistake
 */
export function parsePlace(text: string): EstatePlace {
  if (text.startsWith('sqlite:')) return { kind: 'sqlite', path: readPath(text) };
  const [, hosts, database, options = ''] =
    /^(mongodb(?:\+srv)?:\/\/[^/?]+)\/([^/?]+)(\?.*)?$/u.exec(text) ?? [];
  if (hosts === undefined || database === undefined) {
    throw new Error('must be sqlite:///path or mongodb://host:port/database');
  }
  return { kind: 'mongodb', url: `${hosts}/${options}`, database };
}

function readPath(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const path = url?.pathname ?? '';
  if (url?.host !== '' || url.search !== '' || url.hash !== '' || path.length < 2 || !path.startsWith('/')) {
    throw new Error('must be sqlite:/// and an absolute path');
  }
  return decodeURIComponent(path);
}

/**
 * Opens the estate for reading and writing; `newIncarnation` after a restore from a backup, once.
 * @throws ColonnadeError `unavailable` | `misconfigured`
 */
export function openEstateStore(
  place: EstatePlace,
  options: { newIncarnation?: boolean } = {},
): Promise<EstateStore> {
  return place.kind === 'sqlite'
    ? openSqliteStore({ ...place, ...options })
    : openMongoStore({ ...place, ...options });
}

/** Opens the estate read-only; it may come later. @throws ColonnadeError `misconfigured` */
export function openEstateReader(place: EstatePlace): Promise<EstateReader> {
  return place.kind === 'sqlite' ? openSqliteReader(place) : openMongoReader(place);
}
