import { toColonnadeError } from '@colonnade/contracts';
import type { NodeFacts } from '../rules/node-facts.ts';
import type { NodePlan } from '../rules/node-machine.ts';
import type { NodeAddress } from './find-nodes.ts';
import type { Access, NodeSession } from './session.ts';

/** A node as it was seen at the beginning of a pass. */
export type NodeLook = {
  node: NodeAddress;
  session: NodeSession;
  ready: boolean;
  /** Undefined: it cannot be looked at, and `fault` says why. */
  facts: NodeFacts | undefined;
  fault: string | undefined;
  plan: (NodePlan & { bundle: string }) | undefined;
};

/** Looks at all of them at once. Never throws: a node that cannot be reached is one that says nothing. */
export function lookAtNodes(
  sessions: readonly NodeSession[],
  access: Access,
  planFor: (seen: { present: string; facts: NodeFacts }) => NodePlan & { bundle: string },
): Promise<NodeLook[]> {
  return Promise.all(
    sessions.map(async (session): Promise<NodeLook> => {
      const base = { node: session.node, session };
      try {
        const facts = await session.look(access);
        const present = facts.ca === undefined ? '' : await session.readCa(access);
        const ready = await session.ready(access);
        return { ...base, facts, ready, fault: undefined, plan: planFor({ present, facts }) };
      } catch (thrown) {
        const fault = toColonnadeError(thrown).message;
        return { ...base, facts: undefined, ready: false, fault, plan: undefined };
      }
    }),
  );
}
