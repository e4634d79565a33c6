import { type ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { KubeClient } from '../kube/client.ts';
import { RETRY } from '../kube/objects.ts';
import type { Recorder } from '../record/recorder.ts';
import { hashOf } from '../rules/certificates.ts';
import { isUnfinished, type NodePlan, nextAction } from '../rules/node-machine.ts';
import { gateFor, pickNode } from '../rules/rollout.ts';
import { bundleFor, mayDropOld, type TrustFacts } from '../rules/trust-order.ts';
import type { Allowed, OidcSpec } from '../spec.ts';
import type { NodeStatus } from '../status.ts';
import { type DriveJob, type DriveResult, driveNode } from './drive-node.ts';
import { findNodes, readSshAccess } from './find-nodes.ts';
import { lookAtNodes, type NodeLook } from './look.ts';
import { createNodeBook, type NodeBook } from './node-book.ts';
import type { NodeRoller, RollJob, RollResult } from './roller.ts';
import { type Access, createNodeSession, type NodeSession, pathsOf } from './session.ts';

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
  const stopped = new AbortController();
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
      const result = await rollOnce(deps, job, memory, stopped.signal);
      memory.settled = result.state === 'done' ? { sign, atMs: Date.now() } : undefined;
      return result;
    },
    forget(uid) {
      const memory = memories.get(uid);
      memories.delete(uid);
      if (memory !== undefined) void close(memory);
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      for (const memory of memories.values()) await close(memory);
    },
  };
}

function doneResult(nodes: readonly NodeStatus[]): RollResult {
  return { state: 'done', reason: 'Rotated', message: '', nodes, unfinished: false };
}

/** Everything that decides what nodes should have. */
function signOf({ oidc, source, ...job }: RollJob): string {
  const dropping = source !== undefined && mayDropOld(trustOf(job, oidc, source.facts.caBundle ?? ''));
  const { caBundle = '' } = source?.facts ?? {};
  return hashOf(
    JSON.stringify([oidc, hashOf(caBundle), hashOf(source?.caKey ?? ''), dropping, retryOf(job.ingress)]),
  );
}

function retryOf({ metadata }: RollJob['ingress']): string {
  return `${metadata.generation} ${metadata.annotations?.[RETRY] ?? ''}`;
}

function trustOf(
  { servedSinceMs }: Pick<RollJob, 'servedSinceMs'>,
  oidc: OidcSpec,
  source: string,
): TrustFacts {
  return { source, servedSinceMs, dropAfterMs: oidc.dropOldCAAfterSeconds * 1000, nowMs: Date.now() };
}

async function rollOnce(
  deps: RollerDeps,
  job: RollJob,
  memory: Memory,
  stop: AbortSignal,
): Promise<RollResult> {
  const { oidc } = job;
  let access: Access;
  let nodes: Awaited<ReturnType<typeof findNodes>>;
  try {
    nodes = await findNodes(deps.client, oidc, deps.allowed);
    const ssh = await readSshAccess(deps.client, oidc, deps.namespace);
    const { ca, authorization } = await deps.client.credentials();
    access = { ssh, paths: pathsOf(oidc), probe: { ...oidc.apiServer, ca, authorization } };
  } catch (thrown) {
    return refusal(toColonnadeError(thrown), job);
  }
  const sessions = nodes.map((node) => sessionFor(memory, node));
  const looks = await lookAtNodes(sessions, access, (look) => planFor(job, look));
  const book = createNodeBook(job.status.nodes ?? [], looks);
  return workOnOne(deps, { ...job, access, looks, book, stop });
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
  return { state: 'stopped', reason, message: error.message, nodes: status.nodes ?? [], unfinished: false };
}

/** Without a source a node goes on to what it was begun with. */
function planFor(
  job: RollJob,
  { present, facts }: { present: string; facts: NodeLook['facts'] },
): NodePlan & { bundle: string } {
  const { oidc, source } = job;
  const { restart } = oidc;
  const waits = {
    minWaitMs: restart.minimumWaitSeconds * 1000,
    goneTimeoutMs: restart.stopTimeoutSeconds * 1000,
    readyTimeoutMs: restart.readyTimeoutSeconds * 1000,
  };
  const bundle = source?.facts.caBundle;
  if (bundle === undefined) {
    const target = facts?.journal?.target ?? facts?.ca?.hash ?? '';
    return { ...waits, target, keyTarget: undefined, bundle: present };
  }
  const { text, hash } = bundleFor(trustOf(job, oidc, bundle), present);
  return {
    ...waits,
    target: hash,
    keyTarget: source?.caKey === undefined ? undefined : hashOf(source.caKey),
    bundle: text,
  };
}

type Work = RollJob & { access: Access; looks: readonly NodeLook[]; book: NodeBook; stop: AbortSignal };

async function workOnOne(deps: RollerDeps, work: Work): Promise<RollResult> {
  const { looks, book, status } = work;
  const views = looks.map((look) => ({
    name: look.node.name,
    ready: look.ready,
    unreachable: look.facts === undefined,
    unfinished: look.facts !== undefined && isUnfinished(look.facts),
    done: isDone(look),
  }));
  const sign = `${hashOf(work.source?.facts.caBundle ?? '').slice(0, 16)} ${retryOf(work.ingress)}`;
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
  if (result.end === 'stopped') {
    const { step, output, unfinished } = result;
    return stoppedResult({ node: look.node.name, step, output, for: sign }, book, unfinished);
  }
  return waiting(deps, book, messageOf(look, result), result.end === 'waiting' && isUnfinished(look.facts));
}

function messageOf({ node }: NodeLook, result: DriveResult): string {
  return result.end === 'waiting' ? `${node.name}: ${result.message}` : '';
}

function isDone({ facts, plan, ready }: NodeLook): boolean {
  return (
    facts !== undefined &&
    plan !== undefined &&
    nextAction(facts, plan, { ready, gate: 'asked later' }).do === 'nothing'
  );
}

function waiting({ pollMs }: RollerDeps, book: NodeBook, message: string, unfinished: boolean): RollResult {
  return {
    state: 'working',
    reason: 'RollingOut',
    message,
    nodes: book.rows(),
    unfinished,
    againMs: message === '' ? 100 : Math.max(pollMs, 1000),
  };
}

function stoppedResult(
  stopped: NonNullable<RollResult['stopped']>,
  book: NodeBook,
  unfinished: boolean,
): RollResult {
  const message = `${stopped.node}: ${stopped.step}: ${stopped.output}`;
  return { state: 'stopped', reason: 'RolloutStopped', message, nodes: book.rows(), stopped, unfinished };
}

function driveJob(deps: RollerDeps, work: Work, look: NodeLook): DriveJob {
  const { access, looks, book, oidc, ingress } = work;
  const { name } = look.node;
  const plan = look.plan as NonNullable<NodeLook['plan']>;
  const told = (failure?: string) => (act: string) =>
    deps.recorder.nodeChanged(ingress, { node: name, act, ...(failure === undefined ? {} : { failure }) });
  return {
    ...{ session: look.session, access, oidc, plan, pollMs: deps.pollMs, stop: work.stop },
    payload: { bundle: plan.bundle, key: work.source?.caKey },
    mayBegin: () => deps.isLeader() && !work.finishOnly,
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
      return gateFor(name, views, oidc.restart.allowDowntime);
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
