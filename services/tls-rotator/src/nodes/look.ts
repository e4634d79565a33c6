import { ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { hashOf } from '../rules/certificates.ts';
import { type Journal, NO_FILE, type NodeFacts } from '../rules/node-facts.ts';
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
  /** How it is reached, with the file that work on it was begun with. */
  access: Access;
  /** See `Surroundings`. */
  loaded: string | undefined;
};

export type LookOptions = {
  /** Whether a file that a node's journal names may be gone on with. */
  isAllowedFile: (file: string) => boolean;
  /** Asks the API servers what they run with. */
  reload: boolean;
};

export type PlanFor = (seen: {
  present: string;
  /** What is to be trusted further on, beside what is new. */
  trusted: string;
  facts: NodeFacts;
  /** The file that work was begun with, where the spec names another one by now. */
  begunWith: string | undefined;
}) => NodePlan & { bundle: string };

/** Looks at all of them at once. Never throws: a node that cannot be reached is one that says nothing. */
export function lookAtNodes(
  sessions: readonly NodeSession[],
  access: Access,
  planFor: PlanFor,
  options: LookOptions,
): Promise<NodeLook[]> {
  return Promise.all(
    sessions.map(async (session): Promise<NodeLook> => {
      const base = { node: session.node, session, access };
      try {
        const seen = await lookAt(session, access, options);
        const { facts, ready, loaded } = seen;
        return { ...base, access: seen.access, facts, ready, loaded, fault: undefined, plan: planFor(seen) };
      } catch (thrown) {
        const fault = toColonnadeError(thrown).message;
        return { ...base, facts: undefined, ready: false, loaded: undefined, fault, plan: undefined };
      }
    }),
  );
}

/** Work that was begun is finished on the file it was begun with: what is kept beside the journal is of that one. */
async function lookAt(session: NodeSession, asked: Access, { isAllowedFile, reload }: LookOptions) {
  let access = asked;
  let facts = await session.look(access);
  const { file, apply } = facts.journal ?? {};
  const begunWith = file === undefined || file === access.paths.ca ? undefined : file;
  if (begunWith !== undefined) {
    if (!isAllowedFile(begunWith))
      throw new ColonnadeError(
        'forbidden',
        `work on ${begunWith} was begun, which ALLOWED_NODE_PATHS does not allow`,
      );
    access = { ...asked, paths: { ...asked.paths, ca: begunWith } };
    facts = await session.look(access);
  }
  const present = facts.ca === undefined ? '' : await session.readCa(access);
  if (facts.ca !== undefined && hashOf(present) !== facts.ca.hash)
    throw new ColonnadeError(
      'unavailable',
      `${access.paths.ca} changed while it was read, or is larger than can be read`,
    );
  const trusted =
    facts.journal === undefined ? present : await trustedBefore(session, access, facts.journal, present);
  const ready = await session.ready(access);
  const loaded = ready && (reload || apply === 'reload') ? await session.loaded(access) : undefined;
  return { access, facts, present, trusted, ready, loaded, begunWith };
}

/**
 * What the node trusted when work on it was begun, and everything that is served is trusted by. What was brought since may
 * be the very thing that its API server refuses, and must not be handed on.
 */
async function trustedBefore(
  session: NodeSession,
  access: Access,
  { previous }: Journal,
  present: string,
): Promise<string> {
  const kept = await session.readPrevious(access);
  return previous === NO_FILE || hashOf(kept) === previous ? kept : present;
}
