import type { NodeFacts } from '../rules/node-facts.ts';
import { isUnfinished } from '../rules/node-machine.ts';
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

/** Whether work on a node was begun and its end was not seen: `Unreachable` it may be, forgotten it must not be. */
export function isBegun({ startedAt, finishedAt }: NodeStatus): boolean {
  return startedAt !== undefined && (finishedAt === undefined || finishedAt < startedAt);
}

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
  const row = { ...kept, ...node, phase, caHash: hashOnNode(facts) };
  // Whoever ended it was gone before it could be told.
  return isBegun(row) && !isUnfinished(facts) ? { ...row, phase: 'Pending', finishedAt: now() } : row;
}
