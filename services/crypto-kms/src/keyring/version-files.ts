import { createSecretKey, type KeyObject, randomFillSync } from 'node:crypto';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { KEY_BYTES } from '../enc-format.ts';
import type { Kek } from '../envelope.ts';
import {
  createStateFile,
  listStateDir,
  openStateDir,
  readStateFile,
  replaceStateFile,
} from '../state-dir.ts';
import { openKey, type RootKey, sealKey } from './root-key.ts';
import { type VersionFile, zVersionFile } from './version.ts';

/** The files of one key's versions, and the keys they hold; what was decided about them stands elsewhere. */
export type VersionFiles = {
  files(): readonly VersionFile[];
  /** Its key, unless that was erased. */
  find(kid: string): { file: VersionFile; key: KeyObject | undefined } | undefined;
  /** Whether one is sealed by a root key that is not here: what is made here would be sealed by one that is given up. */
  isMoved(): boolean;
  /** Reads what other replicas have made, and seals anew what is the old root key's. Returns whether there is something new. */
  refresh(): Promise<boolean>;
  /** Returns false when there is one of this number, whoever made it. */
  make(version: number, times: { nowMs: number; activeFromMs: number }, given?: Kek): Promise<boolean>;
  /** What is left says that there was one. */
  erase(version: number, destroyedAtMs: number): Promise<void>;
};

export type VersionFilesOptions = {
  dir: string;
  name: string;
  root: RootKey;
  /** Keys sealed by this one are sealed anew by `root`; values stay as they are. */
  oldRoot?: RootKey | undefined;
};

/** Nothing is read before `refresh`, which throws ColonnadeError `misconfigured`: a root key that cannot open one, a broken file. */
export function openVersionFiles(options: VersionFilesOptions): VersionFiles {
  const { dir, name, root } = options;
  openStateDir(dir);
  const loaded = new Map<number, { file: VersionFile; key: KeyObject | undefined }>();
  const refresh = async (): Promise<boolean> => {
    let isNew = false;
    for (const entry of listStateDir(dir)) {
      const file = await readVersion(dir, entry, name);
      const known = loaded.get(file.version);
      if (
        known?.file.destroyed_at_ms === file.destroyed_at_ms &&
        known.file.sealed?.root === file.sealed?.root
      )
        continue;
      // Sealed anew by a root key that is not here, it still is the key that was read before.
      const kept = isForeign(file, options) ? known?.key : undefined;
      loaded.set(file.version, { file, key: kept ?? (await openVersion(file, options)) });
      isNew = true;
    }
    return isNew;
  };
  return {
    files: () => [...loaded.values()].map(({ file }) => file),
    find(kid) {
      for (const one of loaded.values()) if (one.file.kid === kid) return one;
      return undefined;
    },
    isMoved: () => [...loaded.values()].some(({ file }) => isForeign(file, options)),
    refresh,
    async make(version, { nowMs, activeFromMs }, given) {
      const bytes = given?.key.export() ?? randomFillSync(Buffer.allocUnsafeSlow(KEY_BYTES));
      const kid = given?.kid ?? `${name}-v${version}`;
      try {
        return await createStateFile(path.join(dir, fileName(version)), zVersionFile, {
          format: 'colonnade-key-version/1',
          ...{ name, version, kid },
          created_at_ms: nowMs,
          active_from_ms: activeFromMs,
          sealed: sealKey(root, contextOf(name, version, kid), bytes),
          destroyed_at_ms: null,
        });
      } finally {
        bytes.fill(0);
      }
    },
    async erase(version, destroyedAtMs) {
      const file = loaded.get(version)?.file;
      if (file === undefined) return;
      const gone = { ...file, sealed: null, destroyed_at_ms: destroyedAtMs };
      await replaceStateFile(path.join(dir, fileName(version)), zVersionFile, gone);
      loaded.set(version, { file: gone, key: undefined });
    },
  };
}

async function readVersion(dir: string, entry: string, name: string): Promise<VersionFile> {
  const file = await readStateFile(path.join(dir, entry), zVersionFile);
  const fits = file !== undefined && file.name === name && fileName(file.version) === entry;
  if (fits) return file;
  throw new ColonnadeError('misconfigured', `${path.join(dir, entry)} is not the version its name says`);
}

/** Whether neither root key here opens it. */
function isForeign({ sealed }: VersionFile, { root, oldRoot }: VersionFilesOptions): boolean {
  return sealed !== null && sealed.root !== root.id && sealed.root !== oldRoot?.id;
}

/** Opens a version, and seals it anew when it is still the old root key's. */
async function openVersion(
  file: VersionFile,
  { dir, root, oldRoot }: VersionFilesOptions,
): Promise<KeyObject | undefined> {
  if (file.sealed === null) return undefined;
  const context = contextOf(file.name, file.version, file.kid);
  const isOld = oldRoot !== undefined && file.sealed.root === oldRoot.id && oldRoot.id !== root.id;
  const bytes = openKey(isOld ? oldRoot : root, context, file.sealed);
  try {
    if (isOld) {
      const renewed = { ...file, sealed: sealKey(root, context, bytes) };
      await replaceStateFile(path.join(dir, fileName(file.version)), zVersionFile, renewed);
    }
    return createSecretKey(bytes);
  } finally {
    bytes.fill(0);
  }
}

function fileName(version: number): string {
  return `v${String(version).padStart(6, '0')}.json`;
}

function contextOf(name: string, version: number, kid: string): string {
  return `${name}:${version}:${kid}`;
}
