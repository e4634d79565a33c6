import { rm } from 'node:fs/promises';
import { ColonnadeError, type TouchedMinion } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { type Compiled, nameOf } from './compile.ts';
import { type CompiledPillar, policyDigest, policyText } from './content.ts';
import { dropUnsealed, removeFolders, swapFolders, writeNext } from './folders.ts';
import type { RunGenerationHooks } from './generate.ts';
import type { createStopwatch } from './stopwatch.ts';

type Failure = { minion: TouchedMinion; reason: string; retryable: boolean };
type StepDeps = {
  store: GenerationStore;
  hooks: RunGenerationHooks;
  watch: ReturnType<typeof createStopwatch>;
};

/** What a generation does for each minion. */
export function createMinionStep(
  rewrite: boolean,
  began: { RUDDER_GENERATION_DATETIME: string },
  config: HookRunnerConfig,
  { store, hooks, watch }: StepDeps,
) {
  const failed: Failure[] = [];
  const hooksUntilMs = performance.now() + config.generationHooksMs;
  const put = async (minion: TouchedMinion, compiled: CompiledPillar) => {
    const digest = policyDigest(compiled);
    if (!rewrite && store.digestOf(nameOf(minion)) === digest) return;
    const folders = policyFolders(config.stateDir, minion.master, minion.id);
    await writeNext(folders, policyText(compiled));
    const refusal = await ready(minion, folders.next);
    if (refusal !== undefined) {
      await rm(folders.next, { recursive: true, force: true });
      failed.push({ minion, reason: refusal, retryable: false });
      return;
    }
    store.checkLead();
    await swapFolders(folders);
    await dropUnsealed(folders, compiled.secrets);
    store.setDigest(minion, digest);
    const current = { RUDDER_POLICIES_DIRECTORY_CURRENT: folders.current };
    // The policies are in force: what these hooks say is on record, and changes nothing.
    await watch.time('Run node finished hooks', () =>
      hooks('policy-generation-node-finished', { ...began, ...nodeParameters(minion), ...current }, minion),
    );
  };
  const ready = (minion: TouchedMinion, next: string) => {
    if (performance.now() > hooksUntilMs) return Promise.resolve('the time for hooks is used up');
    const parameters = { ...began, ...nodeParameters(minion), RUDDER_POLICIES_DIRECTORY_NEW: next };
    return watch.time('Run node ready hooks', () =>
      hooks('policy-generation-node-ready', parameters, minion),
    );
  };
  return {
    failed,
    async take({ minion, result }: Compiled): Promise<void> {
      if (!(result instanceof ColonnadeError)) return await put(minion, result);
      if (!isGone(result)) {
        failed.push({ minion, reason: `${result.code}: ${result.message}`, retryable: result.retryable });
        return;
      }
      store.forget(nameOf(minion));
      await removeFolders(policyFolders(config.stateDir, minion.master, minion.id));
    },
  };
}

function isGone({ code }: ColonnadeError): boolean {
  return code === 'unknown_minion' || code === 'unknown_master';
}

function nodeParameters({ master, id, hostname, agent_type }: TouchedMinion) {
  return {
    RUDDER_NODE_ID: id,
    RUDDER_NODE_HOSTNAME: hostname,
    RUDDER_NODE_POLICY_SERVER_ID: master,
    RUDDER_AGENT_TYPE: agent_type,
  };
}
