import type { HookRunnerConfig } from '../config.ts';
import type { Events } from '../events.ts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { minionNamed, nameOf } from '../store/minion-name.ts';
import { forEachAtOnce } from './at-once.ts';
import { listFolders, readDigest, repairFolders } from './folders.ts';

/** Folders that are looked at at once, and after how many the log says how far it is. */
const AT_ONCE = 8;
const TOLD_EVERY = 2000;

/**
 * Before the first generation: ends swaps that were cut short, and has those generated whose folder does not hold what is
 * noted. The power may have failed after a note and before the disk had its folder, or somebody has removed it.
 * @throws ColonnadeError `conflict`: another leads now
 */
export async function checkFolders(
  { stateDir }: Pick<HookRunnerConfig, 'stateDir'>,
  store: Pick<GenerationStore, 'digests' | 'doubt'>,
  events: Pick<Events, 'policiesChecked' | 'policiesDiffer' | 'policiesUnusable'>,
  signal: AbortSignal,
): Promise<void> {
  const noted = store.digests();
  const names = new Set([...noted.keys(), ...(await listFolders(stateDir)).map(nameOf)]);
  const differ: string[] = [];
  const beganMs = performance.now();
  let checked = 0;
  await forEachAtOnce([...names], AT_ONCE, async (name) => {
    if (signal.aborted) return;
    const { master, id } = minionNamed(name);
    const folders = policyFolders(stateDir, master, id);
    // One that cannot be repaired is that minion's trouble, and its generation will say so.
    await repairFolders(folders).catch((error) => events.policiesUnusable(name, error));
    const digest = noted.get(name);
    if (digest !== undefined && digest !== (await readDigest(folders.current))) differ.push(name);
    checked += 1;
    if (checked % TOLD_EVERY === 0 || checked === names.size) {
      events.policiesChecked(checked, names.size, performance.now() - beganMs);
    }
  });
  if (differ.length === 0) return;
  events.policiesDiffer(differ);
  store.doubt(differ.map(minionNamed));
}
