import {
  type AuditMode,
  type Auditor,
  type AuditPlugin,
  type AuditRecorder,
  type AuditWatch,
  auditPlugin,
  eventRefOfBody,
  explainRefOfBody,
  pillarRef,
  pillarRefOfBody,
} from '@colonnade/audit';
import type { ObjectRef } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from './auth/authenticate.ts';
import type { Suppressed } from './auth/denial-limit.ts';
import { groupOf } from './auth/workload.ts';
import type { ParsedBody } from './http/body.ts';
import { PROBLEMS, writeProblem } from './http/problem.ts';

/** Sources that the record of suppressed denials names, the loudest first. */
const SOURCES_NAMED = 10;
const ANONYMOUS = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/** Every request on record, as the audit policy says; what of that is this service's own business. */
export function createAudit(parts: {
  auditor: AuditRecorder;
  watch: AuditWatch;
  mode: AuditMode | undefined;
  store: Pick<EstateStore, 'getPillar'>;
}): AuditPlugin {
  const { auditor, watch, mode, store } = parts;
  return auditPlugin({
    auditor,
    watch,
    mode,
    userOf: ({ principal }) =>
      principal === undefined ? ANONYMOUS : { username: principal.sub, groups: groupsOf(principal) },
    bodyOf: (request) => (request.body as ParsedBody | undefined)?.tree,
    locate: (request, { objectRef }) => locatePillar(store, request, objectRef),
    outcomeOf: describeOutcome,
    // A full stream stops all changes, so nobody may fill it with denials; they are told of together.
    isUnrecorded: ({ problemCode }) => problemCode === 'rate_limited',
    writeError: (reply, error, request) => writeProblem(reply, error, request.id),
  });
}

function groupsOf({ workload, roles }: Principal): readonly string[] {
  return workload === undefined ? roles : [groupOf(workload)];
}

/** The one record of a minute's denials that got none of their own. @throws ColonnadeError `bus_unavailable` */
export async function recordSuppressed(auditor: Auditor, service: string, what: Suppressed): Promise<void> {
  const loudest = [...what.sources].sort(([, a], [, b]) => b - a).slice(0, SOURCES_NAMED);
  const span = auditor.begin({ verb: 'suppress', requestURI: '*', user: { username: service, groups: [] } });
  await span.complete({
    code: PROBLEMS.rate_limited.status,
    reason: 'rate_limited',
    annotations: {
      'colonnade/decision': 'forbid',
      'colonnade/suppressed': String(what.total),
      'colonnade/sources': loudest.map(([source, count]) => `${source}=${count}`).join(' '),
    },
  });
}

/** The URL names a pillar by its pid or not at all; policies name it by its target and name. */
async function locatePillar(
  store: Pick<EstateStore, 'getPillar'>,
  request: FastifyRequest,
  ref: ObjectRef | undefined,
): Promise<ObjectRef | undefined> {
  const body = (request.body as ParsedBody | undefined)?.tree;
  if (ref?.subresource === 'explain' && ref.name === undefined) return explainRefOfBody(body);
  if (ref?.resource === 'events') return eventRefOfBody(body, serviceOf(request));
  if (ref?.resource !== 'pillars') return undefined;
  if (ref.uid === undefined) return pillarRefOfBody(body, ref.subresource);
  // A store that is away is told to the client by the handler, which asks it too.
  const pillar = await store.getPillar(ref.uid).catch(() => undefined);
  return pillar === undefined ? undefined : pillarRef(pillar, ref.subresource);
}

function serviceOf({ principal }: FastifyRequest): string | undefined {
  const identity = principal?.workload?.kind === 'identity' ? principal.workload.identity : undefined;
  return identity?.workload.kind === 'service' ? identity.workload.service : undefined;
}

function describeOutcome(request: FastifyRequest, reply: FastifyReply) {
  const denied = reply.statusCode === 401 || reply.statusCode === 403;
  const location = reply.getHeader('location');
  return {
    ...(request.problemCode === undefined ? {} : { reason: request.problemCode }),
    annotations: {
      'colonnade/decision': denied ? 'forbid' : 'allow',
      ...(typeof location === 'string' ? { 'colonnade/location': location } : {}),
    },
  };
}
