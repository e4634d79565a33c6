import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import type { Kek, Keys } from '../envelope.ts';
import { openStateDir } from '../state-dir.ts';
import { openChangeLog } from './change-log.ts';
import { checkDecision, type KeyDecision, type KeyRules } from './changes.ts';
import type { RootKey } from './root-key.ts';
import { openUses, type Uses } from './uses.ts';
import {
  activeOf,
  ageOfActiveMs,
  isNextWaiting,
  type KeyState,
  statesOf,
  type VersionFile,
} from './version.ts';
import { openVersionFiles, type VersionFiles } from './version-files.ts';

export type KeyVersion = Pick<VersionFile, 'version' | 'kid' | 'created_at_ms' | 'active_from_ms'> & {
  state: KeyState;
  /** When it was given up, and when it is erased; null: it is kept. */
  destroyed_at_ms: number | null;
  erase_after_ms: number | null;
  /** At most so many encryptions were done with it. */
  encryptions: number;
};

/** The versions of one named key. */
export type Keyring = Keys & {
  name: string;
  versions(): readonly KeyVersion[];
  /** Older versions open nothing. */
  minVersion(): number;
  /** Of the active version, since it became so, milliseconds; undefined while a next one waits, or is another root key's to make. */
  ageMs(): number | undefined;
  /**
   * Makes the next version, which seals after the time it takes every replica to know it.
   * @throws ColonnadeError `conflict` while a next version waits already, `unavailable`
   */
  rotate(): Promise<KeyVersion>;
  /**
   * Bars versions below this one from opening, or lets them open again.
   * @throws ColonnadeError `bad_request`, `not_found`, `conflict`, `unavailable`
   */
  setMinVersion(version: number): Promise<void>;
  /** Gives a retired version up that may not open any more. It is gone after `undoMs`. @throws as setMinVersion */
  destroy(version: number, undoMs: number): Promise<KeyVersion>;
  /** Takes that back, as long as it is there. @throws as setMinVersion */
  undestroy(version: number): Promise<KeyVersion>;
  /** Erases what is due, also what a replica that was killed has only decided. Gives the versions. @param record around each */
  eraseDue(record?: RecordErasure): Promise<readonly KeyVersion[]>;
  /** Reads what other replicas have made and decided. Returns whether there is something new. */
  refresh(): Promise<boolean>;
};

type RecordErasure = (version: number, erase: () => Promise<KeyVersion>) => Promise<KeyVersion>;

export type KeyringOptions = {
  stateDir: string;
  name: string;
  root: RootKey;
  /** Keys sealed by this one are sealed anew by `root`; values stay as they are. */
  oldRoot?: RootKey | undefined;
  /** Becomes version one of a keyring that is empty, and must agree with the one that is not (seed 000). */
  first?: Kek | undefined;
  /** From a version's making to its first use, milliseconds. */
  prepublishMs: number;
  nowMs?: () => number;
};

/**
 * A version that waits for longer than this, or twice the time to its first use, was made by a wrong clock. Not less: to a clock that is
 * late every next version lies far ahead, and one made beside it would be used at once.
 */
const WAIT_MOST_MS = 3_600_000;

/**
 * Opens a key of the keyring, and makes its first version where there is none. Of replicas that start at once on one folder exactly one makes it.
 * @throws ColonnadeError `misconfigured`: a root key that cannot open it, a broken file, another first key
 */
export async function openKeyring(options: KeyringOptions): Promise<Keyring> {
  const { name, prepublishMs, nowMs = Date.now } = options;
  const dir = path.join(options.stateDir, 'keyring', name);
  openStateDir(path.dirname(dir));
  const log = await openChangeLog(`${dir}.changes`, name);
  const uses = openUses(`${dir}.uses`);
  let readAtMs = 0;
  const stored = openVersionFiles({ ...options, dir });
  const { files } = stored;
  const farMs = Math.max(2 * prepublishMs, WAIT_MOST_MS);

  const refresh = async (): Promise<boolean> => {
    const startedMs = nowMs();
    const isChanged = await log.refresh();
    const isNew = await stored.refresh();
    readAtMs = startedMs;
    return isChanged || isNew;
  };
  const view = (): KeyVersion[] => viewOf(files(), log.rules(), uses, nowMs());
  const viewVersion = (version: number) => view().find((one) => one.version === version);
  const decide = async (decision: KeyDecision): Promise<KeyVersion> => {
    await refresh();
    const activeVersion = activeOf(files(), nowMs())?.version ?? 0;
    const known = { state: viewVersion(decision.version)?.state, activeVersion, nowMs: nowMs() };
    checkDecision(decision, log.rules(), known);
    if (!(await log.append(decision, nowMs())))
      throw new ColonnadeError(
        'conflict',
        `the key ${name} was changed at the same time: look, and ask again`,
      );
    return viewVersion(decision.version) as KeyVersion;
  };
  const make = (version: number, activeFromMs: number, given?: Kek) =>
    stored.make(version, { nowMs: nowMs(), activeFromMs }, given);

  await refresh();
  if (files().length === 0) {
    await make(1, nowMs(), options.first);
    await refresh();
  }
  checkFirst(options, stored);

  return {
    name,
    active() {
      const version = activeOf(files(), nowMs());
      const key = version && stored.find(version.kid)?.key;
      if (version === undefined || key === undefined)
        throw new ColonnadeError('key_not_configured', `no version of the key ${name} is active`);
      return { kid: version.kid, key };
    },
    find(kid) {
      const { minVersion, ends } = log.rules();
      const { file, key } = stored.find(kid) ?? {};
      if (file === undefined || file.version < minVersion || ends.has(file.version)) return undefined;
      return key && { kid, key };
    },
    async prepare(encryptions) {
      // A version seals so long after it was made; who has read the folder since knows of it.
      // A clock that went back says nothing of how long ago that was.
      const sinceMs = nowMs() - readAtMs;
      if (sinceMs < 0 || sinceMs >= prepublishMs / 2) await refresh();
      const active = activeOf(files(), nowMs());
      if (active !== undefined) await uses.claim(active.version, encryptions);
    },
    versions: view,
    minVersion: () => log.rules().minVersion,
    ageMs: () => (stored.isMoved() ? undefined : ageOfActiveMs(files(), nowMs(), farMs)),
    async rotate() {
      await refresh();
      const next = Math.max(...files().map(({ version }) => version)) + 1;
      if (stored.isMoved())
        throw new ColonnadeError(
          'conflict',
          `another root key seals the key ${name} now: rotate where that one is, and start this replica with it`,
        );
      if (isNextWaiting(files(), nowMs(), farMs) || !(await make(next, nowMs() + prepublishMs)))
        throw new ColonnadeError(
          'conflict',
          `the key ${name} is being rotated: a next version waits to become active`,
        );
      await refresh();
      return viewVersion(next) as KeyVersion;
    },
    setMinVersion: async (version) =>
      void (await decide({ op: 'min-version', version, erase_after_ms: null })),
    destroy: (version, undoMs) => decide({ op: 'destroy', version, erase_after_ms: nowMs() + undoMs }),
    undestroy: (version) => decide({ op: 'undestroy', version, erase_after_ms: null }),
    async eraseDue(record = (_, erase) => erase()) {
      const erased: KeyVersion[] = [];
      for (const { version, sealed } of files()) {
        const end = log.rules().ends.get(version);
        if (end === undefined || sealed === null || nowMs() < end.eraseAfterMs) continue;
        const erase = async () => {
          if (!end.isErased) await decide({ op: 'erase', version, erase_after_ms: null });
          await stored.erase(version, end.destroyedAtMs);
          return viewVersion(version) as KeyVersion;
        };
        erased.push(await record(version, erase));
      }
      return erased;
    },
    refresh,
  };
}

/** A KEK that is configured beside a keyring must be in it: sealing with one and opening with another loses data. */
function checkFirst({ first, name }: KeyringOptions, stored: Pick<VersionFiles, 'find'>): void {
  if (first === undefined) return;
  const known = stored.find(first.kid);
  if (known?.key?.equals(first.key) === true || known?.file.destroyed_at_ms != null) return;
  const what = known === undefined ? 'is not in the keyring' : 'is another one than in the keyring';
  throw new ColonnadeError(
    'misconfigured',
    `the KEK ${first.kid} ${what} (key ${name}). A KEK becomes version one of a keyring that is empty, and only then; remove PILLARS_KEK_FILE and PILLARS_KEK_B64, or give the keyring's own`,
  );
}

function viewOf(files: readonly VersionFile[], { ends }: KeyRules, uses: Uses, nowMs: number): KeyVersion[] {
  const states = statesOf(files, nowMs, ends);
  return files
    .toSorted((a, b) => a.version - b.version)
    .map(({ version, kid, created_at_ms, active_from_ms }) => ({
      ...{ version, kid, created_at_ms, active_from_ms },
      state: states.get(version) as KeyState,
      destroyed_at_ms: ends.get(version)?.destroyedAtMs ?? null,
      erase_after_ms: ends.get(version)?.eraseAfterMs ?? null,
      encryptions: uses.count(version),
    }));
}
