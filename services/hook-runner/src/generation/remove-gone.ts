import type { HookRunnerConfig } from '../config.ts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { type MinionName, nameOf } from '../store/minion-name.ts';
import type { Pending } from '../store/touches.ts';
import { folderFaultOf } from './folder-fault.ts';
import { listFolders, removeFolders } from './folders.ts';
import type { Failure } from './put-policies.ts';

/** A deletion can be told for as long as the stream keeps it, seven days; a folder of which none was goes after that. */
const LOST_MS = 8 * 86_400_000;

/**
 * Removes the policies of minions that are not in the estate any more: those that are told to be gone, whose hooks have ended. What
 * merely is not there may be a deletion whose hooks are still to run, and they are told of the folder.
 */
export async function removeGone(
  { touched, gone }: Pick<Pending, 'touched' | 'gone'>,
  found: readonly MinionName[],
  { stateDir }: Pick<HookRunnerConfig, 'stateDir'>,
  store: Pick<GenerationStore, 'forget' | 'lost'>,
): Promise<readonly Failure[]> {
  const there = new Set(found.map(nameOf));
  const going = new Map(gone.filter((one) => !there.has(nameOf(one))).map((one) => [nameOf(one), one]));
  if (touched.some(({ kind }) => kind === 'all')) {
    const nobodys = (await listFolders(stateDir)).filter((one) => !there.has(nameOf(one)));
    for (const one of store.lost(nobodys, LOST_MS)) going.set(nameOf(one), one);
  }
  const failed: Failure[] = [];
  for (const minion of going.values()) failed.push(...(await removePoliciesOf(minion, stateDir, store)));
  return failed;
}

/** @returns that its folder cannot be removed now */
async function removePoliciesOf(
  { master, id }: MinionName,
  stateDir: string,
  store: Pick<GenerationStore, 'forget'>,
): Promise<readonly Failure[]> {
  const minion = { master, id };
  store.forget(minion);
  const reason = await folderFaultOf(() => removeFolders(policyFolders(stateDir, master, id)));
  return reason === undefined ? [] : [{ minion, reason, retryable: true, gone: true }];
}
