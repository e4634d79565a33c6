import {
  AUDIT_API_GROUP,
  AUDIT_API_VERSION,
  AUDIT_FLOOR,
  AUDIT_TRUNCATED,
  type AuditEvent,
  type AuditStage,
  clipText,
  encode,
  hideTokens,
  LIMITS,
  type ObjectRef,
  zAuditEvent,
} from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import { type AuditLevel, isAtLeast } from '../policy/types.ts';
import { microTime } from './micro-time.ts';
import type { AuditOutcome, AuditRequest } from './request.ts';

export type EventFacts = {
  level: AuditLevel;
  auditID: string;
  stage: AuditStage;
  /** As microTime gives it. */
  receivedAt: string;
  outcome: AuditOutcome | undefined;
};

/** Bounds on what a client sends, so that a record without its bodies always fits one message. */
const MAX_TEXT = 2048;
const MAX_USER_AGENT = 1024;
const MAX_LIST = 64;

/** Bytes a record may have in a message: what NATS carries, less room for an EventList around it. */
export const MAX_EVENT_BYTES = LIMITS.natsPayloadBytes - 1024;

/** One stage of a request as an audit.k8s.io/v1 Event. Lone surrogates, which cannot be encoded, become U+FFFD. */
export function buildEvent(request: AuditRequest, facts: EventFacts): AuditEvent {
  const { level, outcome } = facts;
  const isResource = request.objectRef?.resource !== undefined;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level,
    auditID: facts.auditID,
    stage: facts.stage,
    requestURI: clip(request.requestURI),
    verb: clip(request.verb),
    user: { username: clip(request.user.username), groups: clipList(request.user.groups) },
    sourceIPs: request.sourceIPs === undefined ? undefined : clipList(request.sourceIPs),
    userAgent: request.userAgent === undefined ? undefined : clipUserAgent(request.userAgent),
    objectRef: request.objectRef === undefined ? undefined : completeRef(request.objectRef),
    responseStatus: outcome === undefined ? undefined : statusOf(outcome),
    requestObject: isResource && isAtLeast(level, 'Request') ? outcome?.requestObject : undefined,
    responseObject: isResource && level === 'RequestResponse' ? outcome?.responseObject : undefined,
    requestReceivedTimestamp: facts.receivedAt,
    stageTimestamp: microTime(),
    annotations: annotationsOf(request, outcome),
  };
}

/**
 * The bytes of an event. One that is too large loses its bodies, as in Kubernetes; the event itself is never lost.
 * @param maxBytes what a message carries
 */
export function encodeEvent(event: AuditEvent, maxBytes = MAX_EVENT_BYTES): Uint8Array {
  const hasBody = event.requestObject !== undefined || event.responseObject !== undefined;
  const whole = hasBody ? encode(zAuditEvent, event) : Buffer.from(textOf(event));
  if (whole.length <= maxBytes) return whole;
  const { requestObject: _request, responseObject: _response, ...rest } = event;
  return encode(zAuditEvent, { ...rest, annotations: { ...event.annotations, [AUDIT_TRUNCATED]: 'true' } });
}

/**
 * The canonical text of an event without bodies, as the schema's encoder writes it, for a fraction of the time: a merge
 * makes two. Its texts are well formed (clipText) and its one number is an integer; of those JSON.stringify and the
 * canonical form agree.
 */
function textOf({ annotations, objectRef, responseStatus, user, ...event }: AuditEvent): string {
  const rest = JSON.stringify({
    apiVersion: event.apiVersion,
    auditID: event.auditID,
    kind: event.kind,
    level: event.level,
    objectRef: objectRef && inOrder(objectRef, REF_FIELDS),
    requestReceivedTimestamp: event.requestReceivedTimestamp,
    requestURI: event.requestURI,
    responseStatus: responseStatus && inOrder(responseStatus, STATUS_FIELDS),
    sourceIPs: event.sourceIPs,
    stage: event.stage,
    stageTimestamp: event.stageTimestamp,
    user: { groups: user.groups, username: user.username },
    userAgent: event.userAgent,
    verb: event.verb,
  });
  return annotations === undefined ? rest : `{"annotations":${canonicalText(annotations)},${rest.slice(1)}`;
}

const REF_FIELDS = ['apiGroup', 'apiVersion', 'name', 'namespace', 'resource', 'subresource', 'uid'] as const;
const STATUS_FIELDS = ['code', 'message', 'reason', 'status'] as const;

function inOrder<K extends string>(from: { readonly [key in K]?: unknown }, keys: readonly K[]): object {
  const to: { [key in K]?: unknown } = {};
  for (const key of keys) to[key] = from[key];
  return to;
}

function statusOf({ code, reason, message }: AuditOutcome): NonNullable<AuditEvent['responseStatus']> {
  return {
    code,
    status: code < 400 ? undefined : 'Failure',
    reason: reason === undefined ? undefined : clip(reason),
    message: message === undefined ? undefined : clip(message),
  };
}

function completeRef(ref: ObjectRef): ObjectRef {
  const texts = Object.entries(ref).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const clipped = Object.fromEntries(texts.map(([key, text]) => [key, clip(text)])) as ObjectRef;
  if (ref.resource === undefined) return clipped;
  return { apiGroup: AUDIT_API_GROUP, apiVersion: AUDIT_API_VERSION, ...clipped };
}

/** What a client puts into a URL or a name may be a token of his, which lives on when the request is refused. */
function clip(text: string, max = MAX_TEXT): string {
  return clipText(hideTokens(text), max);
}

/** As kube-apiserver does. */
function clipUserAgent(given: string): string {
  const text = hideTokens(given);
  return (
    text.length > MAX_USER_AGENT ? `${text.slice(0, MAX_USER_AGENT)}...TRUNCATED` : text
  ).toWellFormed();
}

function clipList(texts: readonly string[]): string[] {
  return texts.slice(0, MAX_LIST).map((text) => clip(text));
}

function annotationsOf(
  { floor = true, annotations }: AuditRequest,
  outcome: AuditOutcome | undefined,
): Record<string, string> | undefined {
  const given = Object.entries({ ...annotations, ...outcome?.annotations }).slice(0, MAX_LIST);
  const clipped = given.map(([key, text]) => [clip(key, 256), clip(text)]);
  const all = floor ? [[AUDIT_FLOOR, 'true'], ...clipped] : clipped;
  return all.length === 0 ? undefined : Object.fromEntries(all);
}
