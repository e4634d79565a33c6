import type { NodeFacts } from '../rules/node-facts.ts';
import type { NodePhase, NodeStatus } from '../status.ts';
import type { NodeLook } from './look.ts';
import { hashOnNode } from './session.ts';

/** The rows of `status.nodes`, as they change during a pass. */
export type NodeBook = {
  rows(): readonly NodeStatus[];
  /** @returns whether the row says something else now */
  note(name: string, phase: NodePhase, message: string, facts: NodeFacts): boolean;
};

const now = () => new Date().toISOString().replace(/\.\d+/u, '');

/** @param before the rows of the last pass */
export function createNodeBook(before: readonly NodeStatus[], looks: readonly NodeLook[]): NodeBook {
  const rows = new Map(looks.map((look) => [look.node.name, firstRow(before, look)]));
  return {
    rows: () => [...rows.values()],
    note(name, phase, message, facts) {
      const old = rows.get(name);
      if (old === undefined) return false;
      const row: NodeStatus = { ...old, phase, message, caHash: hashOnNode(facts) };
      if (message === '') delete row.message;
      if (phase === 'Writing' && old.phase !== 'Writing') row.startedAt = now();
      if ((phase === 'Done' || phase === 'RolledBack') && old.phase !== phase) row.finishedAt = now();
      rows.set(name, row);
      return old.phase !== phase || (old.message ?? '') !== message;
    },
  };
}

function firstRow(before: readonly NodeStatus[], { node, facts, fault }: NodeLook): NodeStatus {
  const old = before.find((row) => row.name === node.name && row.address === node.address);
  if (facts === undefined) return { ...(old ?? node), ...node, phase: 'Unreachable', message: fault ?? '' };
  const { message: _, ...kept } = old ?? { ...node, phase: 'Pending' as const };
  const phase = kept.phase === 'Unreachable' ? 'Pending' : kept.phase;
  return { ...kept, ...node, phase, caHash: hashOnNode(facts) };
}
