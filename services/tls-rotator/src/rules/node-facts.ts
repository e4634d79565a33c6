/** What one look at a node tells. Ages instead of times: two machines' clocks are never compared. */
export type NodeFacts = {
  /** The file at destCAPath; undefined: there is none. */
  ca: { hash: string; ageMs: number } | undefined;
  /** The key file of writeKey. */
  keyHash: string | undefined;
  /**
   * Where the static pod's manifest is. `both`: somebody has made a new one while ours was parked. The age is the time
   * since it was moved there.
   */
  manifest: { where: 'in-place' | 'parked' | 'both' | 'missing'; ageMs: number };
  /** The running kube-apiservers: while one is ending there may be two. */
  processes: readonly NodeProcess[];
  /** Whether a restorer would bring the manifest back now, without us and after a reboot. */
  armed: boolean;
  journal: Journal | undefined;
};

/** `id` is boot id, pid and start: no two processes share it, whatever the clock does. */
export type NodeProcess = { id: string; ageMs: number };

/** What stands on the node itself while work on it is not finished; whoever comes next goes on from it. */
export type Journal = {
  version: 1;
  /** `back`: the old CA is being put back. */
  phase: 'forward' | 'back';
  /** SHA-256 of the bundle that is brought. */
  target: string;
  /** SHA-256 of what was there before and is kept beside the journal; `none`: there was no file. */
  previous: string;
  /** The processes that ran when work began. */
  oldProcesses: readonly string[];
  /** How often the manifest was parked in this phase. */
  parks: number;
  /** How the API server gets to know of the file; a journal without it is of a restart. */
  apply?: 'restart' | 'reload';
  /** The path of the file that is brought, for the spec may have got another one meanwhile. */
  file?: string;
  /** Why it goes back. */
  failure?: { step: string; output: string };
};

export const NO_FILE = 'none';

/** @returns undefined for what is no journal: then the node's own facts have to do */
export function parseJournal(text: string): Journal | undefined {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  const journal = found as Partial<Journal> | null;
  if (typeof journal !== 'object' || journal === null || journal.version !== 1) return undefined;
  const { phase, target, previous, oldProcesses, parks, apply = 'restart', file = '' } = journal;
  if (phase !== 'forward' && phase !== 'back') return undefined;
  if (typeof target !== 'string' || typeof previous !== 'string' || typeof parks !== 'number')
    return undefined;
  if ((apply !== 'restart' && apply !== 'reload') || typeof file !== 'string') return undefined;
  if (!Array.isArray(oldProcesses) || oldProcesses.some((id) => typeof id !== 'string')) return undefined;
  return journal as Journal;
}
