import { ColonnadeError, type TouchedMinion } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { nameOf } from '../store/minion-name.ts';
import { createForEach } from './at-once.ts';
import type { Compiled } from './compile.ts';
import { policyOf } from './content.ts';
import type { GenerationHooks } from './generation-hooks.ts';
import {
  type Failure,
  type Next,
  type NodeHooks,
  type Putting,
  putPolicies,
  runFinished,
} from './put-policies.ts';
import { STEPS } from './stopwatch.ts';

/**
 * What a generation does for minions that were compiled together. Where one of the folders of their hooks has any, each
 * minion comes into force on its own, a few of the whole generation at once; where both are empty, all of them together.
 */
export function createMinionStep(
  rewrite: boolean,
  config: Pick<HookRunnerConfig, 'stateDir' | 'generationHooksMs' | 'concurrency'>,
  deps: Omit<Putting, 'stateDir' | 'hooksTime'>,
) {
  const { stateDir } = config;
  const { store, hooks, watch } = deps;
  const failed: Failure[] = [];
  // Answers of several mergers are worked on at once.
  const forEach = createForEach(config.concurrency);
  const putting = { ...deps, stateDir, hooksTime: { leftMs: config.generationHooksMs } };
  const fail = (minion: TouchedMinion, error: ColonnadeError) => {
    // Deleted meanwhile: an event tells of it.
    if (isGone(error)) return;
    // A fault of a merger is not the minion's, and another merger may not have it.
    const retryable = error.retryable || error.code === 'internal';
    failed.push({ minion, reason: `${error.code}: ${error.message}`, retryable });
  };
  return {
    failed,
    /** Runs the hooks that a generation which was broken off has left to run. */
    async runOwed(): Promise<void> {
      for (const { minion, generation } of store.owed()) await runFinished(generation, minion, putting);
    },
    async take(compiled: readonly Compiled[]): Promise<void> {
      for (const { minion, result } of compiled) {
        if (result instanceof ColonnadeError) fail(minion, result);
      }
      const changed = watch.timeSync(STEPS.compare, () => findChanged(compiled, rewrite, store));
      if (changed.length === 0) return;
      const has = await findNodeHooks(hooks);
      const put = async (some: readonly Next[]) => {
        failed.push(...(await putPolicies(some, has, putting)));
      };
      if (!has.ready && !has.finished) await put(changed);
      else await forEach(changed, (next) => put([next]));
    },
  };
}

/** Those whose policies are not the ones in force, or whose in force nobody knows. */
function findChanged(
  compiled: readonly Compiled[],
  rewrite: boolean,
  store: Pick<Putting['store'], 'digestsOf'>,
): readonly Next[] {
  const known = store.digestsOf(compiled.map(({ minion }) => minion));
  return compiled.flatMap(({ minion, result }): Next[] => {
    if (result instanceof ColonnadeError) return [];
    const { text, digest } = policyOf(result);
    const before = known.get(nameOf(minion));
    if (!rewrite && before === digest) return [];
    const unknown = !rewrite && before === undefined;
    return [{ minion, digest, text, secrets: result.secrets, unknown }];
  });
}

async function findNodeHooks({ any }: GenerationHooks): Promise<NodeHooks> {
  const [ready, finished] = await Promise.all([
    any('policy-generation-node-ready'),
    any('policy-generation-node-finished'),
  ]);
  return { ready, finished };
}

function isGone({ code }: ColonnadeError): boolean {
  return code === 'unknown_minion' || code === 'unknown_master';
}
