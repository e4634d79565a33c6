import { setTimeout as sleep } from 'node:timers/promises';
import { type ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { backoffMs } from '../rules/backoff.ts';
import type { NodeFacts } from '../rules/node-facts.ts';
import {
  type Action,
  isUnfinished,
  type NodePlan,
  nextAction,
  type Surroundings,
} from '../rules/node-machine.ts';
import type { OidcSpec } from '../spec.ts';
import type { NodePhase } from '../status.ts';
import { type Change, type Payload, perform, phaseOf } from './perform.ts';
import type { Access, NodeSession } from './session.ts';

export type DriveJob = {
  session: NodeSession;
  access: Access;
  oidc: OidcSpec;
  plan: NodePlan;
  payload: Payload;
  /** Why the node's API server must not go down, or its file not change, now; asked anew before each step. */
  gate: () => Promise<Gates>;
  /** Whether a node may be begun: as the leader, and not while paused. */
  mayBegin: () => boolean;
  pollMs: number;
  stop: AbortSignal;
  onPhase: (phase: NodePhase, message: string, facts: NodeFacts) => Promise<void>;
  onStep: (step: string, ms: number) => Promise<void>;
  onStepFailed: (step: string, error: ColonnadeError) => Promise<void>;
};

export type Gates = Pick<Surroundings, 'gate' | 'gateReload'>;

export type DriveResult =
  | { end: 'done' }
  | { end: 'waiting'; message: string }
  /** No further node is touched until a person, or a new source, says so. */
  | { end: 'stopped'; step: string; output: string; unfinished: boolean };

/** A disk that is full or read-only will be so again; a connection may be better the next time. */
const HELPER_TRIES = 3;

/**
 * Works on one node until it is finished, has to wait for others, or cannot be helped. While its manifest is parked it
 * goes on whatever happens: only this node is asked, and neither the cluster's API nor the leadership.
 */
export async function driveNode(job: DriveJob): Promise<DriveResult> {
  const failures = { step: '', count: 0 };
  let facts: NodeFacts | undefined;
  for (;;) {
    let action: Action = { do: 'nothing' };
    try {
      facts = await job.session.look(job.access);
      action = await decide(job, facts);
      await job.onPhase(phaseOf(action, facts.journal), messageOf(action), facts);
      if (action.do === 'nothing') return { end: 'done' };
      if (action.do === 'fail' && facts.journal === undefined && !job.mayBegin())
        return { end: 'waiting', message: 'no node is begun now' };
      if (action.do === 'fail')
        return { end: 'stopped', step: action.step, output: action.reason, unfinished: isUnfinished(facts) };
      if (action.do === 'wait' && mayLeave(facts, action)) return { end: 'waiting', message: action.reason };
      if (action.do === 'begin' && !job.mayBegin())
        return { end: 'waiting', message: 'no node is begun now' };
      if (action.do === 'wait') await pause(job.pollMs, job.stop);
      else {
        await change(job, action);
        if (action.do === 'finish' && action.failure !== undefined)
          return { end: 'stopped', ...action.failure, unfinished: false };
      }
      failures.count = 0;
    } catch (thrown) {
      const error = toColonnadeError(thrown);
      failures.count = failures.step === action.do ? failures.count + 1 : 1;
      failures.step = action.do;
      await job.onStepFailed(action.do, error);
      const parked = facts?.manifest.where === 'parked' || action.do === 'park';
      if (!parked && failures.count >= HELPER_TRIES) return giveUp(error, action, facts);
      await pause(backoffMs(failures.count, { firstMs: job.pollMs, maxMs: 10_000 }), job.stop);
    }
    if (job.stop.aborted)
      return { end: 'waiting', message: 'the rotator is stopping; whoever comes next goes on' };
  }
}

/** A look that fails says nothing of the node but that it cannot be reached; a step that fails is its own fault. */
function giveUp(error: ColonnadeError, action: Action, facts: NodeFacts | undefined): DriveResult {
  if (error.retryable || action.do === 'nothing') return { end: 'waiting', message: error.message };
  return {
    end: 'stopped',
    step: action.do,
    output: error.message,
    unfinished: facts !== undefined && isUnfinished(facts),
  };
}

async function decide(job: DriveJob, facts: NodeFacts): Promise<Action> {
  if (facts.manifest.where !== 'in-place')
    return nextAction(facts, job.plan, { ready: false, gate: undefined });
  const ready = await job.session.ready(job.access);
  const asked = job.plan.reload !== undefined || facts.journal?.apply === 'reload';
  const loaded = ready && asked ? await job.session.loaded(job.access) : undefined;
  return nextAction(facts, job.plan, { ready, loaded, ...(await job.gate()) });
}

/** Only what waits for others is left; a node that is stopping or starting is stayed with. */
function mayLeave(facts: NodeFacts, action: Extract<Action, { do: 'wait' }>): boolean {
  return action.phase === 'Waiting' || !isUnfinished(facts);
}

async function change(job: DriveJob, action: Change): Promise<void> {
  const startMs = performance.now();
  await perform(job.session, job.access, action, job);
  await job.onStep(action.do, performance.now() - startMs);
}

function messageOf(action: Action): string {
  if (action.do === 'wait') return action.reason;
  if (action.do === 'fail') return `${action.step}: ${action.reason}`;
  if (action.do === 'finish' && action.failure !== undefined)
    return `${action.failure.step}: ${action.failure.output}; the old CA is back`;
  return '';
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
