import type { ObjectRef } from '@colonnade/contracts';
import { pillarRef } from '../event/attributes.ts';

/** What a request is, as Kubernetes would call it. */
export type Described = { verb: string; objectRef: ObjectRef | undefined };

export type RouteFacts = {
  method: string;
  /** The route's pattern, `/pillars/:pid/reveal`; undefined when no route took the request. */
  route: string | undefined;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, unknown>>;
};

/** First segments that are resources of ours. */
const RESOURCES: ReadonlySet<string> = new Set([
  'pillars',
  'collections',
  'masters',
  'services',
  'events',
  'inventories',
  'tokens',
  'revocations',
  'keys',
  'tasks',
  'generations',
  'hooks',
  'scopes',
  'history',
]);
/** Resources that live in another one, which is their namespace. */
const NESTED: ReadonlySet<string> = new Set(['minions']);
const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
/** Questions that are asked with a body, or about many. */
const LISTS: ReadonlySet<string> = new Set(['list', 'search', 'for-target']);

/**
 * Maps a request of our API to verb and object; pure. `GET /masters/m1/minions/web-1` is `get` of the minion `web-1`
 * in the namespace `m1`, `POST /pillars/{pid}/reveal` is `create` of the pillar's subresource `reveal`. What is none of
 * our resources has no object: its verb is the method in lower case, and policies match its URL.
 */
export function describeRequest(facts: RouteFacts): Described {
  const { method, route, query, params } = facts;
  // Which minion, the body of a preview says; nothing is changed by it.
  if (route === '/explain/preview') return { verb: 'get', objectRef: explainRef({}) };
  const segments = route?.split('/').slice(1) ?? [];
  const [first, second] = segments;
  if (first === 'explain') return { verb: 'get', objectRef: explainRef(query) };
  if (first === 'changes') return { verb: 'watch', objectRef: { resource: 'changes' } };
  if (first === 'import')
    return { verb: 'create', objectRef: { resource: 'pillars', subresource: 'import' } };
  if (first === 'export') return { verb: 'get', objectRef: { resource: 'pillars', subresource: 'export' } };
  // What a workload asks about itself: who it is, the record's user says.
  if (first === 'identity') {
    const subresource =
      segments
        .slice(1)
        .filter((one) => !one.startsWith(':'))
        .join('/') || undefined;
    return {
      verb: VERBS[method] ?? 'get',
      objectRef: { resource: 'identity', name: params.id, subresource },
    };
  }
  const objectRef = objectOf(segments, params);
  if (objectRef === undefined) return { verb: method.toLowerCase(), objectRef };
  if (second !== undefined && LISTS.has(second)) return { verb: 'list', objectRef };
  const isOne = objectRef.name !== undefined || objectRef.subresource !== undefined;
  return { verb: VERBS[method] ?? (isOne ? 'get' : 'list'), objectRef };
}

function objectOf(
  segments: readonly string[],
  params: Readonly<Record<string, string>>,
): ObjectRef | undefined {
  const [resource, first, second, third, fourth] = segments;
  if (resource === undefined || !RESOURCES.has(resource)) return undefined;
  const paramOf = (segment: string | undefined) =>
    segment?.startsWith(':') ? params[segment.slice(1)] : undefined;
  const name = paramOf(first);
  if (second !== undefined && NESTED.has(second)) {
    return { resource: second, namespace: name, name: paramOf(third), subresource: fourth };
  }
  // `/tasks/templates/:tpl_id`, `/tasks/template/:tpl_id/with-defaults`
  if (resource === 'tasks' && (first === 'templates' || first === 'template')) {
    return { resource: 'tasktemplates', name: paramOf(second), subresource: third };
  }
  const subresource = name === undefined && first !== 'list' ? first : second;
  return resource === 'pillars'
    ? pillarRef(name === undefined ? {} : { pid: name }, subresource)
    : { resource, name, subresource };
}

/** `GET /explain` is about one minion. */
function explainRef(fields: Readonly<Record<string, unknown>>): ObjectRef {
  return {
    resource: 'minions',
    subresource: 'explain',
    namespace: textOf(fields.master),
    name: textOf(fields.minion_id),
  };
}

/** The minion a body of `POST /explain/preview` is about; the body is as it came, unchecked. */
export function explainRefOfBody(body: unknown): ObjectRef {
  return explainRef(fieldsOf(body));
}

/** The event a body of `POST /events` is, in the namespace of its service; the body is as it came, unchecked. */
export function eventRefOfBody(body: unknown, service: string | undefined): ObjectRef {
  const { type, id } = fieldsOf(body);
  return { resource: 'events', namespace: service, name: textOf(type), uid: textOf(id) };
}

function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
}

/** The pillar a body of `POST /pillars` or `POST /pillars/list` is about; the body is as it came, unchecked. */
export function pillarRefOfBody(body: unknown, subresource?: string): ObjectRef {
  const fields = fieldsOf(body);
  const tgtType = textOf(fields.tgt_type);
  const tgtId = textOf(fields.collection_id) ?? textOf(fields.tgt_id);
  const name = textOf(fields.name);
  return pillarRef(
    {
      ...(tgtType === undefined ? {} : { tgtType }),
      ...(tgtId === undefined ? {} : { tgtId }),
      ...(name === undefined ? {} : { name }),
    },
    subresource,
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
