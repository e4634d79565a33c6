import { type Journal, NO_FILE, type NodeFacts, type NodeProcess } from './node-facts.ts';

/** What a node is to become, and how long each wait may take, milliseconds. */
export type NodePlan = {
  /** SHA-256 of the bundle to write. */
  target: string;
  /** SHA-256 of the key to write beside it; undefined: none is written. */
  keyTarget: string | undefined;
  /** The manifest stays away at least so long (the seed: 20 s). */
  minWaitMs: number;
  /** An API server with a watch open takes up to a minute after TERM. */
  goneTimeoutMs: number;
  /** From the manifest's return until the API server must be ready. */
  readyTimeoutMs: number;
  /** The path of the file. */
  file?: string;
  /** The API server reads the file anew by itself (AuthenticationConfiguration); undefined: it has to be restarted. */
  reload?: ReloadPlan | undefined;
};

export type ReloadPlan = {
  /** From the write until it must run with the file; it looks once a minute where it gets no inotify events. */
  timeoutMs: number;
  /** An API server that does not tell what it runs with is restarted instead. */
  otherwiseRestart: boolean;
};

export type Surroundings = {
  /** The node's own API server, asked through the SSH connection. */
  ready: boolean;
  /** Why this API server must not go down now; undefined: it may. */
  gate: string | undefined;
  /** Of a node that stays up: why its file must not change now. */
  gateReload?: string | undefined;
  /** SHA-256 of the configuration the API server says it runs with; undefined: it tells of none. */
  loaded?: string | undefined;
};

/** The one thing to do next. After each, the node is looked at again. */
export type Action =
  | { do: 'nothing' }
  /** The journal is written and what is there now is kept, before anything is changed. */
  | { do: 'begin'; journal: Journal }
  | { do: 'write'; which: 'target' | 'previous' }
  | { do: 'write-key' }
  | { do: 'arm' }
  /** The restorer's time begins anew, the journal is written, and then the manifest goes. */
  | { do: 'park'; journal: Journal }
  | { do: 'unpark' }
  | { do: 'discard-parked' }
  | { do: 'roll-back'; journal: Journal }
  /** The work is over: restorer, journal and copy go. With a failure: over, but not as wanted. */
  | { do: 'finish'; failure?: NonNullable<Journal['failure']> }
  | { do: 'wait'; phase: WaitPhase; reason: string }
  | { do: 'fail'; step: string; reason: string };
export type WaitPhase = 'Waiting' | 'Stopping' | 'Starting' | 'Reloading';

const MAX_PARKS = 2;

/**
 * The next step of a node, from what is seen there alone: whoever is killed between two steps leaves nothing that the
 * next look does not show (seed 004, steps 3 to 7).
 */
export function nextAction(facts: NodeFacts, plan: NodePlan, around: Surroundings): Action {
  const { journal, manifest } = facts;
  if (manifest.where === 'both') return { do: 'discard-parked' };
  if (journal === undefined) return withoutJournal(facts, plan, around);
  if (manifest.where === 'missing') return lost(journal);
  if (manifest.where === 'parked') return whileParked(facts, journal, plan);
  return whileInPlace(facts, journal, plan, around);
}

function lost(journal: Journal | undefined): Action {
  const reason = 'the manifest of kube-apiserver is neither in its folder nor parked';
  return { do: 'fail', step: journal === undefined ? 'look' : 'unpark', reason };
}

function withoutJournal(facts: NodeFacts, plan: NodePlan, around: Surroundings): Action {
  const { manifest, ca } = facts;
  if (manifest.where === 'missing') return lost(undefined);
  if (manifest.where === 'parked') return { do: 'unpark' };
  if (!around.ready)
    return { do: 'wait', phase: 'Waiting', reason: 'its API server is not ready, so nothing is begun on it' };
  const apply = applyOf(plan, around);
  if (apply === undefined) return { do: 'fail', step: 'reload', reason: NO_PROOF };
  const isRead = apply === 'reload' ? around.loaded === plan.target : oldProcesses(facts).length === 0;
  if (ca?.hash === plan.target && isRead)
    return isKeyRight(facts, plan) ? { do: 'nothing' } : { do: 'write-key' };
  const gate = apply === 'reload' ? around.gateReload : around.gate;
  if (gate !== undefined) return { do: 'wait', phase: 'Waiting', reason: gate };
  return { do: 'begin', journal: freshJournal(facts, plan, { previous: ca?.hash ?? NO_FILE, apply }) };
}

const NO_PROOF =
  'its API server does not tell the hash of its authentication configuration: it is older than Kubernetes 1.34, or runs without --authentication-config, or the rotator may not read /metrics; reload.restartWithoutMetric restarts it instead';

/** Decided once, while the API server is ready, and kept in the journal. */
function applyOf({ reload }: NodePlan, { loaded }: Surroundings): Journal['apply'] {
  if (reload === undefined) return 'restart';
  if (loaded !== undefined) return 'reload';
  return reload.otherwiseRestart ? 'restart' : undefined;
}

function freshJournal(
  facts: NodeFacts,
  { target, file }: NodePlan,
  { previous, apply = 'restart' }: Pick<Journal, 'previous' | 'apply'>,
): Journal {
  const oldProcesses = facts.processes.map(({ id }) => id);
  const base: Journal = { version: 1, phase: 'forward', target, previous, oldProcesses, parks: 0, apply };
  return file === undefined ? base : { ...base, file };
}

/** The API server is down: the only way is on, whatever else has changed meanwhile. */
function whileParked(facts: NodeFacts, journal: Journal, plan: NodePlan): Action {
  const write = writeIfNeeded(facts, journal);
  if (write !== undefined) return write;
  const { ageMs } = facts.manifest;
  const remaining = facts.processes.length;
  if (remaining > 0 && ageMs < plan.goneTimeoutMs)
    return { do: 'wait', phase: 'Stopping', reason: 'the old API server has not ended yet' };
  if (ageMs < plan.minWaitMs)
    return { do: 'wait', phase: 'Stopping', reason: 'the manifest stays away a while' };
  return { do: 'unpark' };
}

function whileInPlace(facts: NodeFacts, journal: Journal, plan: NodePlan, around: Surroundings): Action {
  // The source changed meanwhile. What was there at first is still what to go back to.
  if (journal.phase === 'forward' && journal.target !== plan.target)
    return { do: 'begin', journal: freshJournal(facts, plan, journal) };
  const write = writeIfNeeded(facts, journal);
  if (write !== undefined) return write;
  if (journal.phase === 'forward' && !isKeyRight(facts, plan)) return { do: 'write-key' };
  if (journal.apply === 'reload') return reloadNext(facts, journal, plan, around);
  if (isOld(facts, journal)) return restartNext(facts, journal, around);
  if (facts.processes.length > 0 && around.ready)
    return journal.failure === undefined ? { do: 'finish' } : { do: 'finish', failure: journal.failure };
  // Since the last thing that was done to it.
  const sinceMs = Math.min(facts.manifest.ageMs, facts.ca?.ageMs ?? Number.POSITIVE_INFINITY);
  if (sinceMs < plan.readyTimeoutMs)
    return { do: 'wait', phase: 'Starting', reason: 'the API server is not ready yet' };
  const output = facts.processes.length > 0 ? 'it runs but is not ready' : 'no kube-apiserver runs';
  return giveUp(facts, journal, { step: 'start', output });
}

/** It reads the file by itself, and says so; what it refuses it does not run with. */
function reloadNext(facts: NodeFacts, journal: Journal, plan: NodePlan, around: Surroundings): Action {
  const wanted = journal.phase === 'forward' ? journal.target : journal.previous;
  if (around.ready && around.loaded === wanted)
    return journal.failure === undefined ? { do: 'finish' } : { do: 'finish', failure: journal.failure };
  if ((facts.ca?.ageMs ?? 0) < (plan.reload?.timeoutMs ?? RELOAD_TIMEOUT_MS))
    return { do: 'wait', phase: 'Reloading', reason: 'its API server has not read the file yet' };
  const output =
    around.loaded === undefined
      ? 'its API server does not tell what it runs with'
      : 'its API server still runs with another file: it refused this one (its log says why), or does not see it (a file that is mounted alone never changes)';
  return giveUp(facts, journal, { step: 'reload', output });
}

/** Where the spec has gone over to restarts meanwhile. */
const RELOAD_TIMEOUT_MS = 180_000;

/** The running process has not read the file: it has to go, once the others can do without it. */
function restartNext(facts: NodeFacts, journal: Journal, around: Surroundings): Action {
  if (journal.parks >= MAX_PARKS)
    return giveUp(facts, journal, { step: 'stop', output: 'the old API server does not end' });
  // On the way back the node is the broken one; it serves nobody that it could be taken from.
  if (around.gate !== undefined && (journal.phase === 'forward' || around.ready))
    return { do: 'wait', phase: 'Waiting', reason: around.gate };
  if (!facts.armed) return { do: 'arm' };
  return { do: 'park', journal: { ...journal, parks: journal.parks + 1 } };
}

/** Once back to the old CA, once more started with it; then a person has to look. */
function giveUp(facts: NodeFacts, journal: Journal, failure: NonNullable<Journal['failure']>): Action {
  if (journal.phase === 'back') {
    const first = journal.failure;
    const before = first === undefined ? '' : `; before that: ${first.step}: ${first.output}`;
    return { do: 'fail', step: failure.step, reason: `${failure.output}, with the old CA too${before}` };
  }
  const oldProcesses = facts.processes.map(({ id }) => id);
  return { do: 'roll-back', journal: { ...journal, phase: 'back', parks: 0, oldProcesses, failure } };
}

function writeIfNeeded(facts: NodeFacts, journal: Journal): Action | undefined {
  const present = facts.ca?.hash ?? NO_FILE;
  if (journal.phase === 'back')
    return present === journal.previous ? undefined : { do: 'write', which: 'previous' };
  return present === journal.target ? undefined : { do: 'write', which: 'target' };
}

/** A key file of an installation that wants one is read by nobody at run time: no restart for it. */
function isKeyRight(facts: NodeFacts, plan: NodePlan): boolean {
  return plan.keyTarget === undefined || facts.keyHash === plan.keyTarget;
}

function oldProcesses(facts: NodeFacts): readonly NodeProcess[] {
  const { ca } = facts;
  return ca === undefined ? [] : facts.processes.filter(({ ageMs }) => ageMs >= ca.ageMs);
}

/** By its identity, which no clock can change, or by its age. */
function isOld(facts: NodeFacts, journal: Journal): boolean {
  return (
    oldProcesses(facts).length > 0 || facts.processes.some(({ id }) => journal.oldProcesses.includes(id))
  );
}

/** Whether the node is in the middle of something: then it goes first, and no other is begun. */
export function isUnfinished(facts: NodeFacts): boolean {
  return facts.journal !== undefined || facts.manifest.where === 'parked' || facts.manifest.where === 'both';
}
