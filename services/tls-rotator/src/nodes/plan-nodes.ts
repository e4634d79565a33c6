import type { KubeClient } from '../kube/client.ts';
import { isUnfinished, nextAction } from '../rules/node-machine.ts';
import { gateFor } from '../rules/rollout.ts';
import type { Allowed, OidcSpec } from '../spec.ts';
import type { NodeLook } from './look.ts';
import { lookAtAll } from './look-at-all.ts';
import { stopSign } from './plan-node.ts';
import type { NodeRoller, NodeStep, PlanJob } from './roller.ts';
import { createNodeSession } from './session.ts';

/** Whether a node has everything it is to have, and runs with it. */
export function isDone({ facts, plan, ready, loaded }: NodeLook): boolean {
  if (facts === undefined || plan === undefined) return false;
  const gate = 'asked later';
  return nextAction(facts, plan, { ready, loaded, gate, gateReload: gate }).do === 'nothing';
}

/** See `NodeRoller.plan`. */
export async function planNodes(
  deps: { client: KubeClient; allowed: Allowed; namespace: string },
  job: PlanJob,
): ReturnType<NodeRoller['plan']> {
  await using sessions = new AsyncDisposableStack();
  const looks = await lookAtAll(deps, job, (node) => sessions.use(createNodeSession(node)));
  const steps = looks.map((look) => stepOf(look, looks, job.oidc));
  const { stopped } = job.status;
  return {
    // As `pickNode` takes them: what was begun first, what cannot be reached last.
    steps: steps.toSorted((a, b) => rankOf(a) - rankOf(b)),
    stopped: stopped?.for === stopSign(job) ? stopped : undefined,
  };
}

const RANKS: Readonly<Partial<Record<NodeStep['does'], number>>> = { finish: 0, unreachable: 2, done: 3 };

function rankOf({ does }: NodeStep): number {
  return RANKS[does] ?? 1;
}

function stepOf(look: NodeLook, looks: readonly NodeLook[], oidc: OidcSpec): NodeStep {
  const { node, facts, plan, ready, loaded, fault } = look;
  const step = (does: NodeStep['does'], why: string): NodeStep => ({ name: node.name, does, why });
  if (facts === undefined || plan === undefined) return step('unreachable', fault ?? '');
  if (isDone(look)) return step('done', '');
  if (isUnfinished(facts)) return step('finish', 'work on it was begun and not ended');
  const views = looks.map((l) => ({
    name: l.node.name,
    ready: l.ready,
    unreachable: false,
    unfinished: false,
    done: false,
  }));
  const action = nextAction(facts, plan, {
    ...{ ready, loaded },
    gate: gateFor(node.name, views, oidc.restart.allowDowntime),
    gateReload: gateFor(node.name, views, true),
  });
  if (action.do === 'wait') return step('wait', action.reason);
  if (action.do === 'fail') return step('stop', `${action.step}: ${action.reason}`);
  if (action.do === 'write-key') return step('write-key', 'its key file is not that of the source');
  if (action.do !== 'begin') return step('finish', 'its manifest is not where it belongs');
  const { apply = 'restart' } = action.journal;
  if (facts.ca?.hash !== plan.target) return step(apply, `${plan.file ?? 'its file'} is to be written`);
  return step(apply, 'its API server runs with an older file');
}
