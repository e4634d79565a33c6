import { type ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Recorder } from '../record/recorder.ts';
import { hashOf } from '../rules/certificates.ts';
import { isUnfinished } from '../rules/node-machine.ts';
import { gateFor, pickNode } from '../rules/rollout.ts';
import { mayDropOld } from '../rules/trust-order.ts';
import type { Allowed } from '../spec.ts';
import type { NodeStatus, Status } from '../status.ts';
import { type DriveJob, type DriveResult, driveNode } from './drive-node.ts';
import type { NodeLook } from './look.ts';
import { lookAtAll } from './look-at-all.ts';
import { createNodeBook, isBegun, type NodeBook } from './node-book.ts';
import { retryOf, stopSign, trustOf } from './plan-node.ts';
import { isDone, planNodes } from './plan-nodes.ts';
import type { NodeRoller, RollJob, RollResult } from './roller.ts';
import { createNodeSession, type NodeSession } from './session.ts';

export type RollerDeps = {
  client: KubeClient;
  allowed: Allowed;
  events: Events;
  recorder: Recorder;
  isLeader: () => boolean;
  /** Of the rotator. */
  namespace: string;
  pollMs: number;
  resyncMs: number;
};

/** What is remembered of one IngressTLS between passes. */
type Memory = {
  sessions: Map<string, NodeSession>;
  /** Everything was right at that time, for what the sign stands for. */
  settled: { sign: string; atMs: number } | undefined;
};

export function createNodeRoller(deps: RollerDeps): NodeRoller {
  const memories = new Map<string, Memory>();
  const close = async (memory: Memory) => {
    for (const session of memory.sessions.values()) await session[Symbol.asyncDispose]();
  };
  return {
    async roll(job) {
      const { uid } = job.ingress.metadata;
      const memory = memories.get(uid) ?? { sessions: new Map(), settled: undefined };
      memories.set(uid, memory);
      const sign = signOf(job);
      const { settled } = memory;
      if (settled?.sign === sign && Date.now() - settled.atMs < deps.resyncMs)
        return doneResult(job.status.nodes ?? []);
      const result = await rollOnce(deps, job, memory);
      memory.settled = result.state === 'done' ? { sign, atMs: Date.now() } : undefined;
      return result;
    },
    plan: (job) => planNodes(deps, job),
    forget(uid) {
      const memory = memories.get(uid);
      memories.delete(uid);
      if (memory !== undefined) void close(memory);
    },
    async [Symbol.asyncDispose]() {
      for (const memory of memories.values()) await close(memory);
    },
  };
}

function doneResult(nodes: readonly NodeStatus[]): RollResult {
  return { state: 'done', reason: 'Rotated', message: '', nodes, unfinished: false };
}

/** Everything that decides what nodes should have. */
function signOf(job: RollJob): string {
  const { oidc, source } = job;
  const dropping = source !== undefined && mayDropOld(trustOf(job, source.facts.caBundle ?? ''));
  const { caBundle = '' } = source?.facts ?? {};
  return hashOf(
    JSON.stringify([oidc, hashOf(caBundle), hashOf(source?.caKey ?? ''), dropping, retryOf(job.ingress)]),
  );
}

async function rollOnce(deps: RollerDeps, job: RollJob, memory: Memory): Promise<RollResult> {
  let looks: readonly NodeLook[];
  try {
    looks = await lookAtAll(deps, job, (node) => sessionFor(memory, node));
  } catch (thrown) {
    return refusal(toColonnadeError(thrown), job);
  }
  const book = createNodeBook(job.status.nodes ?? [], looks);
  return workOnOne(deps, { ...job, looks, book });
}

/** A node that has got another address is another one to talk to. */
function sessionFor({ sessions }: Memory, node: { name: string; address: string }): NodeSession {
  const key = `${node.name} ${node.address}`;
  const session = sessions.get(key) ?? createNodeSession(node);
  sessions.set(key, session);
  return session;
}

function refusal(error: ColonnadeError, { status }: RollJob): RollResult {
  if (error.retryable || error.code === 'unauthorized') throw error;
  const reason = error.code === 'forbidden' ? 'NotAllowed' : 'NodesNotReachable';
  const { nodes = [] } = status;
  return { state: 'stopped', reason, message: error.message, nodes, unfinished: nodes.some(isBegun) };
}

type Work = RollJob & { looks: readonly NodeLook[]; book: NodeBook };

async function workOnOne(deps: RollerDeps, work: Work): Promise<RollResult> {
  const { looks, book, status, source } = work;
  for (const look of looks)
    if (source !== undefined && look.facts !== undefined && isDone(look))
      book.note(look.node.name, 'Done', '', look.facts);
  const views = looks.map((look) => ({
    name: look.node.name,
    ready: look.ready,
    unreachable: look.facts === undefined,
    unfinished: look.facts !== undefined && isUnfinished(look.facts),
    done: isDone(look),
  }));
  const sign = stopSign(work);
  const stopped = status.stopped?.for === sign ? status.stopped : undefined;
  const picked = stopped === undefined || views.some((v) => v.unfinished) ? pickNode(views) : undefined;
  const look = looks.find((l) => l.node.name === picked?.name);
  const unreachable = looks.filter((l) => l.facts === undefined);
  if (look?.facts === undefined) {
    if (stopped !== undefined) return stoppedResult(stopped, book, false);
    if (unreachable.length === 0) return doneResult(book.rows());
    return waiting(deps, book, `${unreachable[0]?.node.name}: ${unreachable[0]?.fault ?? ''}`, false);
  }
  const result = await driveNode(driveJob(deps, work, look));
  const isTold = stopped === undefined && wentBackBefore(look, status);
  if (result.end === 'stopped' && !(isTold && !result.unfinished)) {
    const { step, output, unfinished } = result;
    return stoppedResult({ node: look.node.name, step, output, for: sign }, book, unfinished);
  }
  return waiting(deps, book, messageOf(look, result), result.end === 'waiting' && isUnfinished(look.facts));
}

/** It goes back from what is not wanted any more, or from what has been told and a person has said that it may go on. */
function wentBackBefore({ facts, plan }: NodeLook, { stopped }: Status): boolean {
  if (facts?.journal?.phase !== 'back') return false;
  return stopped !== undefined || facts.journal.target !== plan?.target;
}

function messageOf({ node }: NodeLook, result: DriveResult): string {
  return result.end === 'waiting' ? `${node.name}: ${result.message}` : '';
}

function waiting({ pollMs }: RollerDeps, book: NodeBook, message: string, unfinished: boolean): RollResult {
  return {
    state: 'working',
    reason: 'RollingOut',
    message,
    nodes: book.rows(),
    unfinished: unfinished || isLeft(book),
    againMs: message === '' ? 100 : Math.max(pollMs, 1000),
  };
}

function stoppedResult(
  stopped: NonNullable<RollResult['stopped']>,
  book: NodeBook,
  unfinished: boolean,
): RollResult {
  const message = `${stopped.node}: ${stopped.step}: ${stopped.output}`;
  return {
    state: 'stopped',
    reason: 'RolloutStopped',
    message,
    nodes: book.rows(),
    stopped,
    unfinished: unfinished || isLeft(book),
  };
}

/** Something was begun on a node that cannot be reached now. */
function isLeft(book: NodeBook): boolean {
  return book.rows().some((row) => row.phase === 'Unreachable' && isBegun(row));
}

function driveJob(deps: RollerDeps, work: Work, look: NodeLook): DriveJob {
  const { looks, book, oidc, ingress } = work;
  const { access } = look;
  const { name } = look.node;
  const plan = look.plan as NonNullable<NodeLook['plan']>;
  const told = (failure?: string) => (act: string) =>
    deps.recorder.nodeChanged(ingress, { node: name, act, ...(failure === undefined ? {} : { failure }) });
  return {
    ...{ session: look.session, access, oidc, plan, pollMs: deps.pollMs, stop: work.stop },
    payload: { bundle: plan.bundle, key: work.source?.caKey },
    mayBegin: () => deps.isLeader() && !work.finishOnly,
    isOutdated: work.isOutdated,
    async gate() {
      const others = looks.filter((l) => l !== look);
      const ready = await Promise.all(
        others.map(async (l) => ({ name: l.node.name, ready: await l.session.ready(access) })),
      );
      const views = [...ready, { name, ready: true }].map((v) => ({
        ...v,
        unreachable: false,
        unfinished: false,
        done: false,
      }));
      return {
        gate: gateFor(name, views, oidc.restart.allowDowntime),
        gateReload: gateFor(name, views, true),
      };
    },
    async onPhase(phase, message, facts) {
      if (!book.note(name, phase, message, facts)) return;
      await work.onProgress(waiting(deps, book, message === '' ? name : `${name}: ${message}`, true));
    },
    async onStep(step, ms) {
      deps.events.nodeStep({ node: name, step, ms: Math.round(ms) });
      await told()(step);
    },
    async onStepFailed(step, error) {
      deps.events.nodeStepFailed({ node: name, step, error });
      if (step !== 'nothing') await told(error.message)(step);
    },
  };
}
