import {
  type AuditMode,
  type AuditPlugin,
  type AuditRecorder,
  type AuditWatch,
  auditPlugin,
  pillarRef,
  pillarRefOfBody,
} from '@colonnade/audit';
import type { ObjectRef } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ParsedBody } from './http/body.ts';
import { writeProblem } from './http/problem.ts';

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
      principal === undefined ? ANONYMOUS : { username: principal.sub, groups: principal.roles },
    bodyOf: (request) => (request.body as ParsedBody | undefined)?.tree,
    locate: (request, { objectRef }) => locatePillar(store, request, objectRef),
    outcomeOf: describeOutcome,
    // A full stream stops all changes, so a stranger may not fill it.
    isUnrecorded: ({ problemCode, principal }) => problemCode === 'rate_limited' && principal === undefined,
    writeError: (reply, error, request) => writeProblem(reply, error, request.id),
  });
}

/** The URL names a pillar by its pid or not at all; policies name it by its target and name. */
async function locatePillar(
  store: Pick<EstateStore, 'getPillar'>,
  request: FastifyRequest,
  ref: ObjectRef | undefined,
): Promise<ObjectRef | undefined> {
  if (ref?.resource !== 'pillars') return undefined;
  if (ref.uid === undefined) return pillarRefOfBody((request.body as ParsedBody | undefined)?.tree);
  // A store that is away is told to the client by the handler, which asks it too.
  const pillar = await store.getPillar(ref.uid).catch(() => undefined);
  return pillar === undefined ? undefined : pillarRef(pillar, ref.subresource);
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
