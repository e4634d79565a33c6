import type { Bus } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  clipText,
  decodeTree,
  type HookRun,
  hooksRun,
  type InventoryFacts,
  restartCall,
  zInventoryFacts,
} from '@colonnade/contracts';
import type { MinionRecord } from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';

/** What happens around the registration and the deletion of a minion. */
export type Lifecycle = {
  /** What its inventory says; undefined where there is none. */
  factsOf(master: string, id: string): Promise<InventoryFacts | undefined>;
  /**
   * Asks the hooks of `node-pre-deletion` (seed 002).
   * @throws ColonnadeError `conflict` naming the hook that refuses, `unavailable` where nobody answers: then nothing is deleted
   */
  beforeDeletion(
    minion: MinionRecord,
    facts: InventoryFacts | undefined,
    by: string,
    call: Call,
  ): Promise<void>;
};

export const DELETION_HOOKS = ['required', 'off'] as const;

/** Longer than other requests may take: hooks ask other systems. Who asks again meanwhile joins the same run. */
const HOOKS_BUDGET_MS = 60_000;

export function createLifecycle(
  estate: Pick<Estate, 'store'>,
  bus: Pick<Bus, 'request'>,
  hooks: (typeof DELETION_HOOKS)[number],
): Lifecycle {
  return {
    async factsOf(master, id) {
      const inventory = await estate.store.getInventory(master, id);
      return inventory === undefined ? undefined : decodeTree(zInventoryFacts, inventory.facts);
    },
    async beforeDeletion(minion, facts, by, call) {
      if (hooks === 'off') return;
      const { master, id, tick } = minion;
      const path = `/masters/${master}/minions/${encodeURIComponent(id)}`;
      const result = await bus.request(
        hooksRun,
        {
          event: 'node-pre-deletion',
          run: `${master}/${id}@${tick}`,
          subject: path,
          by,
          parameters: parametersOf(minion, facts),
        },
        restartCall(HOOKS_BUDGET_MS, call),
      );
      if (result.status === 'error') throw refusalOf(result);
    },
  };
}

function parametersOf({ master, id }: MinionRecord, facts: InventoryFacts | undefined) {
  return {
    RUDDER_NODE_ID: id,
    RUDDER_NODE_HOSTNAME: facts?.hostname || id,
    RUDDER_NODE_POLICY_SERVER_ID: master,
    RUDDER_AGENT_TYPE: facts?.agent_type || 'salt',
    RUDDER_NODE_ROLES: facts?.roles?.join(',') ?? '',
  };
}

/** What the hook wrote is what its author has to say to whoever wants to delete, and to nobody else. */
function refusalOf({ results, fault }: HookRun): ColonnadeError {
  const last = results.at(-1);
  if (last === undefined) {
    const why = `the hooks before a deletion could not be run: ${fault ?? 'no reason given'}`;
    return new ColonnadeError('conflict', why);
  }
  const said = last.message === '' ? undefined : clipText(last.message, 2000);
  return new ColonnadeError('conflict', `the hook ${last.hook} keeps the minion (${last.reason})`, { said });
}
