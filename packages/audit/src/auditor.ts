import { randomUUID } from 'node:crypto';
import type { Bus } from '@colonnade/bus';
import {
  type AuditEvent,
  type AuditStage,
  auditSubject,
  type BusUser,
  clipText,
  encode,
  type ObjectRef,
  startCall,
  zAuditEvent,
} from '@colonnade/contracts';
import { microTime } from './micro-time.ts';

export type AuditUser = { username: string; groups: readonly string[] };

/** Who does what to which object: the facts known when a request arrives (seed 001). */
export type AuditRequest = {
  verb: string;
  requestURI: string;
  user: AuditUser;
  sourceIPs?: readonly string[];
  userAgent?: string;
  objectRef?: ObjectRef;
  /** The client's Audit-ID, when it sent a well-formed one; never used as message id. */
  auditID?: string;
};

export type AuditOutcome = {
  /** As an HTTP status. */
  code: number;
  reason?: string;
  annotations?: Readonly<Record<string, string>>;
};

/** One request on record. Each call waits until the stream has acknowledged the record. */
export type AuditSpan = {
  auditID: string;
  /** @throws ColonnadeError `bus_unavailable`: the record is not stored, so the act must not happen */
  received(): Promise<void>;
  /** @throws ColonnadeError `bus_unavailable`: the record is not stored, so no result may be given */
  complete(outcome: AuditOutcome): Promise<void>;
};

export type Auditor = { begin(request: AuditRequest): AuditSpan };

const PUBLISH_BUDGET_MS = 2000;
const MAX_TEXT = 2048;

/** Builds audit.k8s.io/v1 events and stores them in the stream AUDIT, under the name of one service. */
export function createAuditor(options: { bus: Pick<Bus, 'publishDurable'>; service: BusUser }): Auditor {
  return {
    begin(request) {
      // Server-made: a client that repeats its Audit-ID must not make the stream drop a record as a duplicate.
      const recordId = randomUUID();
      const auditID = request.auditID ?? recordId;
      const receivedAt = microTime();
      const publish = async (stage: AuditStage, outcome?: AuditOutcome) => {
        const event = buildEvent(request, { auditID, stage, receivedAt, outcome });
        await options.bus.publishDurable(
          {
            subject: auditSubject(options.service),
            msgId: `${recordId}:${stage}`,
            payload: encode(zAuditEvent, event),
          },
          startCall(PUBLISH_BUDGET_MS),
        );
      };
      return {
        auditID,
        received: () => publish('RequestReceived'),
        complete: (outcome) => publish('ResponseComplete', outcome),
      };
    },
  };
}

function buildEvent(
  request: AuditRequest,
  at: { auditID: string; stage: AuditStage; receivedAt: string; outcome: AuditOutcome | undefined },
): AuditEvent {
  const { outcome } = at;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: at.auditID,
    stage: at.stage,
    requestURI: clip(request.requestURI),
    verb: request.verb,
    user: { username: clip(request.user.username), groups: [...request.user.groups] },
    sourceIPs: request.sourceIPs === undefined ? undefined : [...request.sourceIPs],
    userAgent: request.userAgent === undefined ? undefined : clip(request.userAgent),
    objectRef: request.objectRef,
    responseStatus:
      outcome === undefined
        ? undefined
        : { code: outcome.code, status: outcome.code < 400 ? undefined : 'Failure', reason: outcome.reason },
    requestReceivedTimestamp: at.receivedAt,
    stageTimestamp: microTime(),
    annotations: outcome?.annotations === undefined ? undefined : { ...outcome.annotations },
  };
}

/** Texts of a client are bounded, so that a record always fits one message. */
function clip(text: string): string {
  return clipText(text, MAX_TEXT);
}
