import type { Touched } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { policyFolders } from '../policy-folders.ts';
import { type GenerationStore, type MinionName, nameOf } from '../store/generation-store.ts';
import { folderFaultOf } from './folder-fault.ts';
import { listFolders, removeFolders } from './folders.ts';
import type { Failure } from './put-policies.ts';

/** Removes the policies of minions that are not in the estate any more: those asked for by name, or all when all were. */
export async function removeGone(
  touched: readonly Touched[],
  found: readonly MinionName[],
  config: Pick<HookRunnerConfig, 'stateDir'>,
  store: GenerationStore,
): Promise<readonly Failure[]> {
  const there = new Set(found.map(nameOf));
  const failed: Failure[] = [];
  const asked: MinionName[] = touched.some(({ kind }) => kind === 'all')
    ? await listFolders(config.stateDir)
    : touched.filter((one) => one.kind === 'minion');
  for (const minion of asked) {
    if (!there.has(nameOf(minion))) failed.push(...(await removePoliciesOf(minion, config.stateDir, store)));
  }
  return failed;
}

/** @returns that its folder cannot be removed now */
export async function removePoliciesOf(
  { master, id }: MinionName,
  stateDir: string,
  store: Pick<GenerationStore, 'forget'>,
): Promise<readonly Failure[]> {
  const minion = { master, id };
  store.forget(minion);
  const reason = await folderFaultOf(() => removeFolders(policyFolders(stateDir, master, id)));
  return reason === undefined ? [] : [{ minion, reason, retryable: true }];
}
