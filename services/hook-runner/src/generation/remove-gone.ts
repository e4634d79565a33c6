import type { Touched } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { policyFolders } from '../policy-folders.ts';
import { type GenerationStore, type MinionName, nameOf } from '../store/generation-store.ts';
import { listFolders, removeFolders } from './folders.ts';

/** Removes the policies of minions that are not in the estate any more: those asked for by name, or all when all were. */
export async function removeGone(
  touched: readonly Touched[],
  found: readonly MinionName[],
  config: HookRunnerConfig,
  store: GenerationStore,
): Promise<void> {
  const there = new Set(found.map(nameOf));
  const asked: MinionName[] = touched.some(({ kind }) => kind === 'all')
    ? await listFolders(config.stateDir)
    : touched.filter((one) => one.kind === 'minion');
  for (const minion of asked) {
    if (there.has(nameOf(minion))) continue;
    store.forget(minion);
    await removeFolders(policyFolders(config.stateDir, minion.master, minion.id));
  }
}
