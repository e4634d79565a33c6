import { toColonnadeError } from '@colonnade/contracts';
import { startTurns } from '../turns.ts';
import type { Keyring, KeyVersion } from './keyring.ts';

/** `version`: of an erasure, which one. */
export type RecordOwnAct = (
  act: 'rotate' | 'erase',
  version: number | undefined,
  work: () => Promise<KeyVersion>,
) => Promise<KeyVersion>;

export type RotationOptions = {
  keyring: Pick<Keyring, 'refresh' | 'rotate' | 'ageMs' | 'versions' | 'eraseDue'>;
  /** Age at which the active version is followed by a next one, milliseconds; undefined: only by hand. */
  maxAgeMs: number | undefined;
  /** How often other replicas' versions are looked for; well below the time a new version waits before it seals. */
  pollMs: number;
  /** Around each act, which happens only if it can be put on record. */
  record: RecordOwnAct;
  onRotated: (version: KeyVersion) => void;
  onRefreshed: (versions: readonly KeyVersion[]) => void;
  onErased: (version: KeyVersion) => void;
  /** After each turn, for how often each has encrypted. */
  onUsed: (versions: readonly KeyVersion[]) => void;
  onFault: (error: Error) => void;
};

/**
 * Keeps a replica's view of a key fresh, makes the next version when the active one is old enough, and erases what was destroyed
 * long enough ago. Of replicas that find that at once, one does it and the others read it. Disposing waits for the turn under way.
 */
export function startRotation(options: RotationOptions): AsyncDisposable {
  // What there is has just been read.
  return startTurns(options.pollMs, () => turn(options), options.pollMs);
}

async function turn(options: RotationOptions): Promise<void> {
  const { keyring, maxAgeMs, record, onRotated, onRefreshed, onErased, onUsed, onFault } = options;
  try {
    if (await keyring.refresh()) onRefreshed(keyring.versions());
    onUsed(keyring.versions());
    const erased = await keyring.eraseDue((version, erase) => record('erase', version, erase));
    for (const version of erased) onErased(version);
    const ageMs = keyring.ageMs();
    if (maxAgeMs === undefined || ageMs === undefined || ageMs < maxAgeMs) return;
    onRotated(await record('rotate', undefined, () => keyring.rotate()));
  } catch (thrown) {
    const error = toColonnadeError(thrown);
    // Another replica was first: its version is read at the next turn.
    if (error.code !== 'conflict') onFault(error);
  }
}
