import { randomUUID } from 'node:crypto';
import type { Bus } from '@colonnade/bus';
import {
  type AuditEvent,
  type AuditStage,
  auditSubject,
  type BusUser,
  ColonnadeError,
  startCall,
} from '@colonnade/contracts';
import type { PolicyEvaluator } from '../policy/evaluate.ts';
import type { AuditDecision, AuditLevel } from '../policy/types.ts';
import { attributesOf } from './attributes.ts';
import { sendUntilStored } from './backlog.ts';
import { type Batch, type Batcher, createBatcher } from './batcher.ts';
import { buildEvent, encodeEvent } from './build-event.ts';
import { microTime } from './micro-time.ts';
import type { AuditOutcome, AuditRequest } from './request.ts';
import { type AuditWatch, silentWatch } from './watch.ts';

/** One request on record. Each call waits until the stream has acknowledged the record, if the policy wants one. */
export type AuditSpan = {
  auditID: string;
  /** @throws ColonnadeError `bus_unavailable`: the record is not stored, so the act must not happen */
  received(): Promise<void>;
  /** @throws ColonnadeError `bus_unavailable`: the record is not stored, so no result may be given */
  complete(outcome: AuditOutcome): Promise<void>;
  /**
   * As complete, for what happens thousands of times a second: stored together with the records of other acts, with one
   * acknowledgement for all of them.
   * @throws ColonnadeError `bus_unavailable`: the record is not stored, so no result may be given
   */
  completeBatched(outcome: AuditOutcome): Promise<void>;
  /**
   * As completeBatched, but tried until the stream has it: each try of a batch under the same message id, so that a lost
   * acknowledgement makes no second record. Whoever tries completeBatched again makes one.
   * @throws ColonnadeError for a record that no try will store
   */
  completeUntilStored(outcome: AuditOutcome): Promise<void>;
};

/** What somebody needs who only puts acts on record. */
export type Auditor = { begin(request: AuditRequest): AuditSpan };

/** A span with all the stages a request over HTTP can have. */
export type RequestSpan = AuditSpan & {
  level: AuditLevel;
  /** Of a long-running request: its answer begins. @throws ColonnadeError `bus_unavailable` */
  started(outcome: AuditOutcome): Promise<void>;
  /** Instead of complete, when whoever handles errors has failed too. @throws ColonnadeError `bus_unavailable` */
  panicked(outcome: AuditOutcome): Promise<void>;
  /** The bytes of one stage's record, to be sent by other means; undefined when the policy wants none. */
  encode(stage: AuditStage, outcome?: AuditOutcome): Uint8Array | undefined;
  /**
   * The message id under which a stage's record was sent without an acknowledgement: it may be stored all the same, so
   * whoever sends it again uses this id. Undefined when it was never sent.
   */
  triedAs(stage: AuditStage): string | undefined;
};

export type AuditRecorder = {
  begin(request: AuditRequest): RequestSpan;
  /** Stores what a batcher has put together. @throws ColonnadeError `bus_unavailable` */
  publishBatch(batch: Batch, options?: { isRetry: boolean }): Promise<void>;
};

export type AuditorOptions = {
  bus: Pick<Bus, 'publishDurable'> & Partial<Pick<Bus, 'isConnected'>>;
  /** Under whose name records are stored. */
  service: BusUser;
  /** Without one: everything at Metadata. */
  policy?: PolicyEvaluator;
  watch?: AuditWatch;
};

const PUBLISH_BUDGET_MS = 2000;
const UNTIL_STORED_LINGER_MS = 25;
/** As many as a service has on their way at once (crypto-kms' record queue), so that none waits for its own. */
const UNTIL_STORED_ENOUGH = 32;
const EVERYTHING: PolicyEvaluator = {
  evaluate: () => ({ level: 'Metadata', omitStages: [], omitManagedFields: false }),
};

/** Builds audit.k8s.io/v1 events and stores them in the stream AUDIT, under the name of one service. */
export function createAuditor(options: AuditorOptions): AuditRecorder {
  const { service, policy = EVERYTHING, watch = silentWatch } = options;
  const subject = auditSubject(service);
  const publish = async (
    msgId: string,
    payload: Uint8Array,
    { allowDuplicate = false, onSend = () => {} } = {},
  ) => {
    // At once, instead of after the time a publish waits: every request would wait for it.
    if (options.bus.isConnected?.() === false) {
      throw new ColonnadeError('bus_unavailable', 'not connected to NATS: nothing can be put on record');
    }
    onSend();
    const call = startCall(PUBLISH_BUDGET_MS);
    await options.bus.publishDurable({ subject, msgId, payload, allowDuplicate }, call);
  };
  const publishBatch = async (batch: Batch, { isRetry } = { isRetry: false }) => {
    const startMs = performance.now();
    try {
      await publish(batch.msgId, batch.payload, { allowDuplicate: isRetry });
    } catch (error) {
      watch.failed({ stage: 'batch', error });
      throw error;
    }
    watch.storedInBatch({ count: batch.count, ms: performance.now() - startMs });
  };
  // One at a time: the server syncs one after the other anyway, and what waits meanwhile leaves together.
  const batcher = createBatcher({ send: (batch) => publishBatch(batch), maxInFlight: 1 });
  // Nobody waits for these, and each message costs a write to disk on the server and again in the log.
  const untilStored = createBatcher({
    send: (batch) => sendUntilStored({ publishBatch }, batch),
    ...{ lingerMs: UNTIL_STORED_LINGER_MS, enough: UNTIL_STORED_ENOUGH },
  });
  return {
    begin: (request) =>
      createSpan(request, decide(policy, request), { publish, batcher, untilStored, watch }),
    publishBatch,
  };
}

type Ways = {
  publish: (msgId: string, payload: Uint8Array, options: { onSend: () => void }) => Promise<void>;
  batcher: Batcher;
  untilStored: Batcher;
  watch: AuditWatch;
};

function createSpan(request: AuditRequest, decision: AuditDecision, ways: Ways): RequestSpan {
  const { publish, batcher, untilStored, watch } = ways;
  // Server-made: a client that repeats its Audit-ID must not make the stream drop a record as a duplicate.
  const recordId = randomUUID();
  const auditID = request.auditID ?? recordId;
  const receivedAt = microTime();
  const { level } = decision;
  const tried = new Map<AuditStage, string>();
  const build = (stage: AuditStage, outcome: AuditOutcome | undefined): AuditEvent | undefined => {
    if (level === 'None' || decision.omitStages.includes(stage)) return undefined;
    return buildEvent(request, { level, auditID, stage, receivedAt, outcome });
  };
  const store = async (stage: AuditStage, outcome?: AuditOutcome) => {
    const event = build(stage, outcome);
    if (event === undefined) return;
    const startMs = performance.now();
    const msgId = `${recordId}:${stage}`;
    try {
      await publish(msgId, encodeEvent(event), { onSend: () => void tried.set(stage, msgId) });
    } catch (error) {
      watch.failed({ stage, error });
      throw error;
    }
    watch.stored({ stage, level, ms: performance.now() - startMs });
  };
  const storeWithOthers = async (others: Batcher, outcome: AuditOutcome) => {
    const event = build('ResponseComplete', outcome);
    if (event !== undefined) await others.add(encodeEvent(event));
  };
  return {
    auditID,
    level,
    received: () => store('RequestReceived'),
    started: (outcome) => store('ResponseStarted', outcome),
    complete: (outcome) => store('ResponseComplete', outcome),
    completeBatched: (outcome) => storeWithOthers(batcher, outcome),
    completeUntilStored: (outcome) => storeWithOthers(untilStored, outcome),
    panicked: (outcome) => store('Panic', outcome),
    encode(stage, outcome) {
      const event = build(stage, outcome);
      return event === undefined ? undefined : encodeEvent(event);
    },
    triedAs: (stage) => tried.get(stage),
  };
}

/** What the policy says, lifted to the floor, where the request has one. */
function decide(policy: PolicyEvaluator, request: AuditRequest): AuditDecision {
  const decision = policy.evaluate(attributesOf(request));
  if (request.floor === false) return decision;
  return { ...decision, level: decision.level === 'None' ? 'Metadata' : decision.level, omitStages: [] };
}
