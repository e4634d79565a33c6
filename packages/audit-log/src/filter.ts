import {
  type AuditAttributes,
  type AuditLevel,
  isAtLeast,
  type PolicyEvaluator,
} from '@colonnade/audit/policy';
import { AUDIT_FLOOR } from '@colonnade/contracts';
import { canonicalBytes, parseValue, type ValueObject } from '@colonnade/value';
import { type ParsedEvent, type ReadEvent, readEvent } from './read-message.ts';

/** How much of an event a backend takes: `None` leaves it out, a lower level than its own takes bodies off it. */
export type EventFilter = (event: ParsedEvent) => AuditLevel;

type Read = Extract<ReadEvent, { ok: true }>;

/** As deep as bodies of Kubernetes may be. */
const MAX_DEPTH = 512;

/**
 * What a policy says of an event that was recorded already, whoever recorded it. It can leave out and take off; what has a
 * floor (packages/audit/README.md lists what has one) is never left out.
 */
export function filterBy(policy: PolicyEvaluator): EventFilter {
  return (event) => {
    const { level, omitStages } = policy.evaluate(attributesOf(event));
    const omitted = level === 'None' || (omitStages as readonly string[]).includes(event.stage);
    if (!omitted) return level;
    return hasFloor(event) ? 'Metadata' : 'None';
  };
}

/** The event as the backend gets it; undefined: it does not. What is not lowered stays byte for byte. */
export function applyFilter(read: Read, filter: EventFilter | undefined): Read | undefined {
  if (filter === undefined) return read;
  const level = filter(read.event);
  if (level === 'None') return undefined;
  return isAtLeast(level, read.event.level as AuditLevel) ? read : lower(read, level);
}

function lower(read: Read, level: AuditLevel): Read {
  const event = parseValue(read.bytes, { maxDepth: MAX_DEPTH }) as ValueObject;
  const { responseObject: _response, ...withRequest } = event;
  const { requestObject: _request, ...bare } = withRequest;
  const lowered = readEvent(canonicalBytes({ ...(level === 'Request' ? withRequest : bare), level }));
  // Cannot be: it was an event before its bodies went.
  if (!lowered.ok) throw new Error(`a lowered event is none: ${lowered.detail}`);
  return lowered;
}

function hasFloor({ annotations }: ParsedEvent): boolean {
  return textOf(annotations, AUDIT_FLOOR) === 'true';
}

/** The attributes a policy of Kubernetes looks at, out of the record. */
function attributesOf(event: ParsedEvent): AuditAttributes {
  const { objectRef, user } = event;
  const resource = textOf(objectRef, 'resource');
  const groups = (user as { groups?: unknown } | undefined)?.groups;
  return {
    user: {
      name: textOf(user, 'username'),
      groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
    },
    verb: textOf(event, 'verb'),
    isResource: resource !== '',
    apiGroup: textOf(objectRef, 'apiGroup'),
    resource,
    subresource: textOf(objectRef, 'subresource'),
    namespace: textOf(objectRef, 'namespace'),
    name: textOf(objectRef, 'name'),
    path: textOf(event, 'requestURI').split(/[?#]/u, 1)[0] ?? '',
  };
}

function textOf(object: unknown, key: string): string {
  const text = typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[key] : '';
  return typeof text === 'string' ? text : '';
}
