import { AUDIT_API_GROUP, type ObjectRef } from '@colonnade/contracts';
import type { AuditAttributes } from '../policy/types.ts';
import type { AuditRequest } from './request.ts';

/** A request as a policy sees it. */
export function attributesOf(request: AuditRequest): AuditAttributes {
  const { verb, user, objectRef, requestURI } = request;
  const isResource = objectRef?.resource !== undefined;
  return {
    user: { name: user.username, groups: user.groups },
    verb,
    isResource,
    apiGroup: isResource ? (objectRef.apiGroup ?? AUDIT_API_GROUP) : '',
    resource: objectRef?.resource ?? '',
    subresource: objectRef?.subresource ?? '',
    namespace: objectRef?.namespace ?? '',
    name: objectRef?.name ?? '',
    path: requestURI.split(/[?#]/u, 1)[0] ?? '',
  };
}

/** What names a pillar: its target as far as it is known, its name, its id. */
export type PillarFacts = { tgtType?: string; tgtId?: string; name?: string; pid?: string };

/**
 * A pillar in a record: its namespace is the kind of its target (`root`, `minion`), for a collection
 * `collection:<id>`; its name is the pillar's, its uid the pid.
 */
export function pillarRef({ tgtType, tgtId, name, pid }: PillarFacts, subresource?: string): ObjectRef {
  const namespace = tgtType === 'collection' && tgtId !== undefined ? `collection:${tgtId}` : tgtType;
  return { resource: 'pillars', namespace, name: name ?? pid, uid: pid, subresource };
}

/** The merged pillar of a minion: what a merge reads. */
export function mergeRef(master: string, minionId: string | undefined): ObjectRef {
  return { resource: 'minions', subresource: 'pillar', namespace: master, name: minionId };
}
