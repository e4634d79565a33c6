import { rm } from 'node:fs/promises';
import type { TouchedMinion } from '@colonnade/contracts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore, Swapped } from '../store/generation-store.ts';
import type { MinionName } from '../store/minion-name.ts';
import { forEachAtOnce } from './at-once.ts';
import { folderFaultOf } from './folder-fault.ts';
import { dropUnsealed, readDigest, swapFolders, writeNext } from './folders.ts';
import type { GenerationHooks } from './generation-hooks.ts';
import { STEPS, type Stopwatch } from './stopwatch.ts';

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
  watch: Stopwatch;
};
/** Whose policies are not in force, and whether to try again without a change; or are not removed, of one that is gone. */
export type Failure = { minion: MinionName; reason: string; retryable: boolean; gone?: true };
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
  const { generation, store, watch } = putting;
  const refused: Failure[] = [];
  /** A folder that cannot be used is that of one minion, and of no other. @returns for whom `work` says true */
  const choose = async (some: readonly Next[], work: (next: Next) => Promise<boolean>) => {
    const chosen: Next[] = [];
    await forEachAtOnce(some, FILES_AT_ONCE, async (next) => {
      const reason = await folderFaultOf(async () => void ((await work(next)) && chosen.push(next)));
      if (reason !== undefined) refused.push({ minion: next.minion, reason, retryable: true });
    });
    return chosen;
  };
  const there = await watch.time(STEPS.compare, () => choose(all, (next) => isInForce(next, putting)));
  const missing = all.filter((next) => !there.includes(next));
  const written = await watch.time(STEPS.write, () =>
    choose(missing, async (next) => {
      await writeNext(foldersOf(putting, next.minion), next.text);
      return true;
    }),
  );
  const approved = !has.ready
    ? written
    : await choose(written, async (next) => {
        const refusal = await refusalOf(next.minion, putting);
        if (refusal !== undefined) refused.push({ minion: next.minion, ...refusal });
        return refusal === undefined;
      });
  const inForce = await watch.time(STEPS.swap, async () => {
    if (approved.length > 0) store.beginSwap(approved.map(({ minion }) => minion));
    const swapped = await choose(approved, async (next) => {
      await swapFolders(foldersOf(putting, next.minion));
      return true;
    });
    const clean = await choose([...there, ...swapped], async (next) => {
      await dropUnsealed(foldersOf(putting, next.minion), next.secrets);
      return true;
    });
    if (clean.length > 0) store.noteSwapped(clean, has.finished ? generation : undefined);
    return clean;
  });
  if (has.finished) for (const { minion } of inForce) await runFinished(generation, minion, putting);
  return refused;
}

/** Whether a generation that was cut short has put these policies into force already. */
async function isInForce(next: Next, putting: Putting): Promise<boolean> {
  return next.unknown && (await readDigest(foldersOf(putting, next.minion).current)) === next.digest;
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
    : await watch.time(STEPS.readyHooks, () => hooks.ready(generation, minion, next));
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
  await watch.time(STEPS.finishedHooks, () => hooks.finished(generation, minion, current));
  store.noteFinished(minion);
}

function foldersOf({ stateDir }: Pick<Putting, 'stateDir'>, { master, id }: TouchedMinion) {
  return policyFolders(stateDir, master, id);
}
