import type { TouchedMinion } from '@colonnade/contracts';
import type { HookEventName } from '../run/hook-events.ts';
import type { Runner } from '../runner.ts';
import { nameOf } from '../store/minion-name.ts';

/** Why hooks stop what they were run for; undefined when they do not. */
type Refusal = string | undefined;

export type GenerationHooks = {
  /** Of no minion. */
  run(
    event: HookEventName,
    generation: string,
    parameters?: Readonly<Record<string, string>>,
  ): Promise<Refusal>;
  /** @param folder of the minion's next policies, or of those in force */
  ready(generation: string, minion: TouchedMinion, folder: string): Promise<Refusal>;
  finished(generation: string, minion: TouchedMinion, folder: string): Promise<Refusal>;
  /** Whether an event has any hook now. */
  any(event: HookEventName): Promise<boolean>;
};

/** The hooks of generations: each run has a name of its own, so that what has ended in it never runs again. */
export function createGenerationHooks(
  runner: Pick<Runner, 'run' | 'hasHooks'>,
  signal: AbortSignal,
): GenerationHooks {
  const run = async (
    event: HookEventName,
    generation: string,
    more: Readonly<Record<string, string>>,
    minion?: TouchedMinion,
  ): Promise<Refusal> => {
    const of = minion === undefined ? '' : `:${nameOf(minion)}`;
    const subject = minion === undefined ? '/generations' : `/masters/${minion.master}/minions/${minion.id}`;
    const parameters = { RUDDER_GENERATION_DATETIME: generation, ...nodeParameters(minion), ...more };
    const planned = { id: `generation:${generation}:${event}${of}`, event, subject, parameters };
    const { status, results, fault } = await runner.run(planned, true, signal);
    if (status !== 'error') return undefined;
    const last = results.at(-1);
    return last === undefined
      ? (fault?.message ?? 'the hooks could not be run')
      : `${last.hook}: ${last.reason}`;
  };
  return {
    run: (event, generation, parameters = {}) => run(event, generation, parameters),
    ready: (generation, minion, folder) =>
      run('policy-generation-node-ready', generation, { RUDDER_POLICIES_DIRECTORY_NEW: folder }, minion),
    finished: (generation, minion, folder) =>
      run(
        'policy-generation-node-finished',
        generation,
        { RUDDER_POLICIES_DIRECTORY_CURRENT: folder },
        minion,
      ),
    any: runner.hasHooks,
  };
}

function nodeParameters(minion: TouchedMinion | undefined): Record<string, string> {
  if (minion === undefined) return {};
  const { master, id, hostname, agent_type } = minion;
  return {
    RUDDER_NODE_ID: id,
    RUDDER_NODE_HOSTNAME: hostname,
    RUDDER_NODE_POLICY_SERVER_ID: master,
    RUDDER_AGENT_TYPE: agent_type,
  };
}
