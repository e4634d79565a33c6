import { z } from 'zod';
import { isErrorCode } from './errors.ts';
import type { GrantAct } from './grant.ts';
import { LIMITS } from './limits.ts';

/** Names of the NATS users: one per service, one for the operator, one that may make streams. */
export const BUS_USERS = [
  'pillar-api',
  'pillar-merger',
  'crypto-kms',
  'audit-sink',
  'tls-rotator',
  'hook-runner',
  'operator',
  'provisioner',
] as const;
export type BusUser = (typeof BUS_USERS)[number];

/**
 * Bytes of an endpoint's bodies, written and read by hand where the schema is too slow. Writing gives what the schema would;
 * reading gives undefined for whatever is not plainly right, and the schema then decides.
 */
export type WireForm<Req, Res> = {
  writeRequest(request: Req): Uint8Array;
  /** @throws ColonnadeError `bad_request`: no JSON */
  readRequest(bytes: Uint8Array): Req | undefined;
  writeResponse(response: Res): Uint8Array;
  /** @throws ColonnadeError `bad_request`: no JSON */
  readResponse(bytes: Uint8Array): Res | undefined;
};

/** A request/reply endpoint: subject, bodies, who answers and who may ask. Rights are generated from these. */
export type Endpoint<Req extends z.ZodType = z.ZodType, Res extends z.ZodType = z.ZodType> = {
  /** Name within the NATS micro service: letters, digits, `-`, `_`. */
  name: string;
  subject: string;
  server: BusUser;
  callers: readonly BusUser[];
  request: Req;
  response: Res;
  /** The answer holds a secret: it is encrypted to the process that asked. */
  sealedAnswer?: true;
  /** What a grant has to be for that the request carries in `grant`; without it none is asked for. */
  grant?: GrantAct;
  wire?: WireForm<z.output<Req>, z.output<Res>>;
};

/** `colonnade.<area>.v1.<verb>`. */
export function subjectOf(area: string, verb: string): string {
  return `colonnade.${area}.v1.${verb}`;
}

export function defineEndpoint<Req extends z.ZodType, Res extends z.ZodType>(
  endpoint: Omit<Endpoint<Req, Res>, 'name'>,
): Endpoint<Req, Res> {
  const [, area, , ...verb] = endpoint.subject.split('.');
  return { ...endpoint, name: [area, ...verb].join('-') };
}

/** The body of a micro error; its code also stands in the header `Nats-Service-Error`. */
export const zWireError = z.strictObject({
  code: z.string().refine(isErrorCode, 'unknown error code'),
  message: z.string().max(2048),
});

/** One item of a batch: its own success or its own error. */
export function itemResult<S extends z.ZodType>(ok: S) {
  return z.union([
    z.strictObject({ ok: z.literal(true), result: ok }),
    z.strictObject({ ok: z.literal(false), error: zWireError }),
  ]);
}

export function batchOf<S extends z.ZodType>(item: S) {
  return z.array(item).min(1).max(LIMITS.kmsBatchItems);
}

/** Headers of a request on the bus. */
export const HEADER_TRACEPARENT = 'traceparent';
/** The Audit-ID of the request a call is made for. */
export const HEADER_AUDIT_ID = 'Audit-ID';
/** The user a call is made for, percent-encoded. */
export const HEADER_USER = 'Colonnade-User';
export const HEADER_BUDGET_MS = 'Colonnade-Budget-Ms';
/** Of an endpoint whose answers are sealed: the public key of the one who asks, and in the answer that of the server. */
export const HEADER_REPLY_KEY = 'Colonnade-Reply-Key';
