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
import { type Change, type Payload, perform, phaseOf, restoreMs } from './perform.ts';
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
  /** Whether another source or spec is wanted by now than the one this is done for. */
  isOutdated: () => boolean;
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
  const failures = new Map<Action['do'], number>();
  const seen: Seen = { facts: undefined, awayUntilMs: 0 };
  for (;;) {
    let action: Action = { do: 'nothing' };
    try {
      const facts = await look(job, seen);
      action = await decide(job, facts);
      failures.delete('nothing');
      const end = await step(job, action, seen, facts);
      if (end !== undefined) return end;
    } catch (thrown) {
      const error = toColonnadeError(thrown);
      const count = (failures.get(action.do) ?? 0) + 1;
      failures.set(action.do, count);
      await job.onStepFailed(action.do, error);
      const isAway = performance.now() < seen.awayUntilMs && (action.do !== 'park' || error.retryable);
      if (!isAway && count >= HELPER_TRIES) return giveUp(error, action, seen.facts);
      await pause(backoffMs(count, { firstMs: job.pollMs, maxMs: 10_000 }), job.stop);
    }
    if (job.stop.aborted)
      return { end: 'waiting', message: 'the rotator is stopping; whoever comes next goes on' };
  }
}

/** `awayUntilMs`: until then the manifest is parked, or may be; after that the node has brought it back by itself. */
type Seen = { facts: NodeFacts | undefined; awayUntilMs: number };

async function look(job: DriveJob, seen: Seen): Promise<NodeFacts> {
  const facts = await job.session.look(job.access);
  const { where, ageMs } = facts.manifest;
  seen.facts = facts;
  seen.awayUntilMs = where === 'parked' ? performance.now() + restoreMs(job.oidc) - ageMs : 0;
  return facts;
}

/** @returns undefined: there is more to do */
async function step(
  job: DriveJob,
  action: Action,
  seen: Seen,
  facts: NodeFacts,
): Promise<DriveResult | undefined> {
  await job.onPhase(phaseOf(action, facts.journal), messageOf(action), facts);
  if (action.do === 'nothing') return { end: 'done' };
  const isFirst = action.do === 'begin' || (action.do === 'fail' && facts.journal === undefined);
  if (isFirst && !job.mayBegin()) return { end: 'waiting', message: 'no node is begun now' };
  if (action.do === 'fail')
    return { end: 'stopped', step: action.step, output: action.reason, unfinished: isUnfinished(facts) };
  if (action.do === 'wait') {
    if (mayLeave(facts, action) || isOvertaken(job, facts)) return { end: 'waiting', message: action.reason };
    await pause(job.pollMs, job.stop);
    return undefined;
  }
  if (action.do === 'park') seen.awayUntilMs = performance.now() + restoreMs(job.oidc);
  await change(job, action);
  return action.do === 'finish' && action.failure !== undefined
    ? { end: 'stopped', ...action.failure, unfinished: false }
    : undefined;
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

/**
 * What this node waits for is not wanted any more: the next pass has what is. Not on the way back, whose end has to be
 * told of what it went back from.
 */
function isOvertaken({ isOutdated }: DriveJob, { journal, manifest }: NodeFacts): boolean {
  return journal?.phase === 'forward' && manifest.where === 'in-place' && isOutdated();
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
