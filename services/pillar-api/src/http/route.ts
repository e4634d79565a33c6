import type { Readable } from 'node:stream';
import type { RouteAudit } from '@colonnade/audit';
import { type Call, ColonnadeError, encodeText, LIMITS, zNothing } from '@colonnade/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import type { Permission } from '../auth/permissions.ts';
import { decodeInput, type ParsedBody } from './body.ts';
import { type Conditions, readConditions } from './etag.ts';
import type { Rates } from './rates.ts';
import type { OnRefused } from './refusal.ts';

/** What a handler gets: everything already decoded and checked against the route's schemas. */
export type Input<P, Q, B> = {
  principal: Principal;
  params: P;
  query: Q;
  body: B;
  /** Hex, of the body's bytes; of nothing when there is none. */
  bodySha256: string;
  conditions: Conditions;
  idempotencyKey: string | undefined;
  call: Call;
};

type Answer<R> = { status: number; body?: R; etag?: string; location?: string; replayed?: boolean };

/**
 * How far a route looks at scoped roles. `target`: its handler asks `requireOn` or `selectOn` for all it shows or
 * changes. `estate`: it is about no single target, so the permission must hold for the whole estate. `none`: it
 * shows nothing of the estate.
 */
export type Scope = 'target' | 'estate' | 'none';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One route, as the README's table, the audit plugin and the router see it. */
export type RouteSpec<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType> = {
  method: Method;
  url: string;
  permission: Permission;
  scope: Scope;
  /**
   * On record whatever the audit policy says, and no answer without its record. Unless it says otherwise, whatever is no GET
   * has a floor: it changes something. A GET that shows credentials says that it has one, a question with a body that it has none.
   */
  floor?: boolean;
  /** `kept`: answers are stored for repeated keys. `refused`: the answer holds a secret. */
  idempotency: 'kept' | 'refused' | 'ignored';
  params?: P;
  query?: Q;
  body?: B;
  response: R;
  handle: (input: Input<z.output<P>, z.output<Q>, z.output<B>>) => Promise<Answer<z.output<R>>>;
};

/** A route whose types are its own business. */
export type Route = Pick<
  RouteSpec<z.ZodType, z.ZodType, z.ZodType, z.ZodType>,
  'method' | 'url' | 'permission' | 'scope'
> & {
  audit: RouteAudit;
  /** Counted in these instead of those of all requests. */
  rates?: Rates;
  onRefused?: OnRefused;
  /** Media types of a body that the route reads as it arrives; see `defineStreamedRoute`. */
  accepts?: readonly string[] | undefined;
  /** For the OpenAPI document. */
  docs: {
    query: z.ZodType;
    body: z.ZodType;
    response: z.ZodType;
    idempotency: 'kept' | 'refused' | 'ignored';
    /** Of an answer that is no problem. */
    mediaType: string;
    /** Of an answer that is a stream of text, in one of several formats. */
    streams?: readonly string[] | undefined;
  };
  run: (
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
    call: Call,
  ) => Promise<string | Readable>;
};

const zAnyParams = z.record(z.string(), z.string());
const SHA256_OF_NOTHING = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export function defineRoute<
  P extends z.ZodType = typeof zAnyParams,
  Q extends z.ZodType = typeof zNothing,
  B extends z.ZodType = typeof zNothing,
  R extends z.ZodType = typeof zNothing,
>(spec: RouteSpec<P, Q, B, R>): Route {
  const { method, url, permission, scope, floor = spec.method !== 'GET' } = spec;
  const params = (spec.params ?? zAnyParams) as P;
  const query = (spec.query ?? zNothing) as Q;
  const body = (spec.body ?? zNothing) as B;
  return {
    method,
    url,
    permission,
    scope,
    audit: { request: body, response: spec.response, floor },
    docs: {
      query,
      body,
      response: spec.response,
      idempotency: spec.idempotency,
      mediaType: 'application/json',
    },
    async run(request, reply, principal, call) {
      const parsed = request.body as ParsedBody | undefined;
      if (parsed === undefined && !body.safeParse(undefined).success) {
        throw new ColonnadeError('bad_request', 'the request needs a JSON body');
      }
      const answer = await spec.handle({
        principal,
        params: decodeInput(params, request.params),
        query: decodeInput(query, request.query),
        body: decodeInput(body, parsed?.tree),
        bodySha256: parsed?.sha256 ?? SHA256_OF_NOTHING,
        conditions: readConditions(request.headers['if-match'], request.headers['if-none-match']),
        idempotencyKey: readIdempotencyKey(request.headers['idempotency-key'], spec.idempotency),
        call,
      });
      if (scope === 'target') requireChecked(principal, permission);
      return writeAnswer(reply, spec.response, answer);
    },
  };
}

/** Of a handler that forgot to ask, whoever has scoped roles gets no answer. @throws ColonnadeError `internal` */
function requireChecked({ access }: Principal, permission: Permission): void {
  if (access.checks.count > 0 || access.whole.has(permission)) return;
  throw new ColonnadeError('internal', 'the scope of the roles was not checked, so the answer is withheld');
}

function readIdempotencyKey(
  header: string | string[] | undefined,
  policy: RouteSpec<z.ZodType, z.ZodType, z.ZodType, z.ZodType>['idempotency'],
): string | undefined {
  if (header === undefined || policy === 'ignored') return undefined;
  const fault = (why: string) => new ColonnadeError('bad_request', why, { field: 'Idempotency-Key' });
  if (policy === 'refused')
    throw fault('no Idempotency-Key here: the answer holds a secret and is never stored');
  const valid = typeof header === 'string' && /^[\x21-\x7e]+$/u.test(header);
  if (valid && header.length <= LIMITS.idempotencyKeyChars) return header;
  throw fault(`Idempotency-Key must be 1–${LIMITS.idempotencyKeyChars} visible ASCII characters`);
}

function writeAnswer<R extends z.ZodType>(
  reply: FastifyReply,
  schema: R,
  answer: Answer<z.output<R>>,
): string {
  reply.code(answer.status);
  if (answer.etag !== undefined) reply.header('etag', answer.etag);
  if (answer.location !== undefined) reply.header('location', answer.location);
  if (answer.replayed === true) reply.header('idempotent-replayed', 'true');
  if (answer.body === undefined) return '';
  reply.header('content-type', 'application/json; charset=utf-8');
  return encodeText(schema, answer.body);
}
