import { rm } from 'node:fs/promises';
import type { TouchedMinion } from '@colonnade/contracts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore, MinionName, Swapped } from '../store/generation-store.ts';
import { forEachAtOnce } from './at-once.ts';
import { folderFaultOf } from './folder-fault.ts';
import { dropUnsealed, readDigest, swapFolders, writeNext } from './folders.ts';
import type { GenerationHooks } from './generation-hooks.ts';
import type { createStopwatch } from './stopwatch.ts';

export type Next = Swapped & {
  text: string;
  secrets: readonly string[];
  /** Nobody knows what is in force: these may be already, by a generation that was cut short. */
  unknown: boolean;
};
export type Putting = {
  generation: string;
  stateDir: string;
  /** What is left of the time for node-ready hooks, of all minions together. */
  hooksTime: { leftMs: number };
  store: GenerationStore;
  hooks: GenerationHooks;
  watch: ReturnType<typeof createStopwatch>;
};
/** Whose policies are not in force, and whether to try again without a change. */
export type Failure = { minion: MinionName; reason: string; retryable: boolean };
/** Whether the folders of the hooks of minions hold any. */
export type NodeHooks = { ready: boolean; finished: boolean };

/** Minions whose files are written or renamed at once: Node.js has four threads for that, and batches overlap. */
const FILES_AT_ONCE = 8;

/**
 * Puts policies into force that belong together: the fence is checked once for all, and one transaction notes all. What is
 * cut short in between leaves whole policies, and no digest: the next generation looks at the files themselves.
 * @returns whom hooks have refused, and whose folder cannot be used
 * @throws ColonnadeError `conflict`, `unavailable`
 */
export async function putPolicies(
  all: readonly Next[],
  has: NodeHooks,
  putting: Putting,
): Promise<readonly Failure[]> {
  const { generation, store } = putting;
  const refused: Failure[] = [];
  const there: Next[] = [];
  const approved: Next[] = [];
  const swapped: Next[] = [];
  const inForce: Next[] = [];
  /** A folder that cannot be used is that of one minion, and of no other. */
  const forEach = (some: readonly Next[], work: (next: Next) => Promise<void>) =>
    forEachAtOnce(some, FILES_AT_ONCE, async (next) => {
      const reason = await folderFaultOf(() => work(next));
      if (reason !== undefined) refused.push({ minion: next.minion, reason, retryable: true });
    });
  await forEach(all, async (next) => {
    const folders = foldersOf(putting, next.minion);
    if (next.unknown && (await readDigest(folders.current)) === next.digest) {
      there.push(next);
      return;
    }
    await writeNext(folders, next.text);
    const refusal = has.ready ? await refusalOf(next.minion, putting) : undefined;
    if (refusal === undefined) approved.push(next);
    else refused.push({ minion: next.minion, ...refusal });
  });
  if (approved.length > 0) store.beginSwap(approved.map(({ minion }) => minion));
  await forEach(approved, async (next) => {
    await swapFolders(foldersOf(putting, next.minion));
    swapped.push(next);
  });
  await forEach([...there, ...swapped], async (next) => {
    await dropUnsealed(foldersOf(putting, next.minion), next.secrets);
    inForce.push(next);
  });
  if (inForce.length > 0) store.noteSwapped(inForce, has.finished ? generation : undefined);
  if (has.finished) for (const { minion } of inForce) await runFinished(generation, minion, putting);
  return refused;
}

/** Why its new policies may not be put into force. What a hook has refused is refused until something changes (as in seed 002). */
async function refusalOf(
  minion: TouchedMinion,
  putting: Putting,
): Promise<Omit<Failure, 'minion'> | undefined> {
  const { generation, hooksTime, hooks, watch } = putting;
  const { next } = foldersOf(putting, minion);
  const isLate = hooksTime.leftMs <= 0;
  const beganMs = performance.now();
  const reason = isLate
    ? 'the time for hooks is used up'
    : await watch.time('Run node ready hooks', () => hooks.ready(generation, minion, next));
  hooksTime.leftMs -= performance.now() - beganMs;
  if (reason === undefined) return undefined;
  await rm(next, { recursive: true, force: true });
  return { reason, retryable: isLate };
}

/** The policies are in force: what these hooks say is on record, and changes nothing. */
export async function runFinished(
  generation: string,
  minion: TouchedMinion,
  putting: Pick<Putting, 'stateDir' | 'store' | 'hooks' | 'watch'>,
): Promise<void> {
  const { store, hooks, watch } = putting;
  const { current } = foldersOf(putting, minion);
  await watch.time('Run node finished hooks', () => hooks.finished(generation, minion, current));
  store.noteFinished(minion);
}

function foldersOf({ stateDir }: Pick<Putting, 'stateDir'>, { master, id }: TouchedMinion) {
  return policyFolders(stateDir, master, id);
}
