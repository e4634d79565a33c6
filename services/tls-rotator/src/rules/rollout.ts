/** One node of a rollout as far as it is known. */
export type NodeView = {
  name: string;
  /** Answers on its own port. */
  ready: boolean;
  /** Cannot be looked at: no SSH. */
  unreachable: boolean;
  /** Work on it was begun and not ended. */
  unfinished: boolean;
  /** Has everything it is to have, and runs with it. */
  done: boolean;
};

/**
 * The one node to work on: an unfinished one before all others, else the first that lacks something.
 * @returns undefined: nothing is to be done, or what is to be done cannot be reached
 */
export function pickNode(nodes: readonly NodeView[]): NodeView | undefined {
  return nodes.find((n) => n.unfinished) ?? nodes.find((n) => !n.done && !n.unreachable);
}

/**
 * Why the API server of a node must not go down now: every other one has to be ready.
 * @returns undefined: it may
 */
export function gateFor(
  name: string,
  nodes: readonly NodeView[],
  allowDowntime: boolean,
): string | undefined {
  const others = nodes.filter((n) => n.name !== name);
  if (others.length === 0)
    return allowDowntime ? undefined : 'it is the only node: its restart needs restart.allowDowntime';
  const down = others.filter((n) => !n.ready).map((n) => n.name);
  if (down.length === 0) return undefined;
  return `waiting for the API server of ${down.join(', ')}`;
}
