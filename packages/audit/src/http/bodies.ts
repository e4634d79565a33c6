import { AUDIT_TRUNCATED, zProblem } from '@colonnade/contracts';
import { parseValue, type Value } from '@colonnade/value';
import type { z } from 'zod';
import { MAX_EVENT_BYTES } from '../event/build-event.ts';
import type { AuditOutcome } from '../event/request.ts';
import { type AuditLevel, isAtLeast } from '../policy/types.ts';
import { maskBody } from './mask.ts';

export type Bodies = {
  level: AuditLevel;
  status: number;
  /** Parsed; undefined when there was none, none that could be parsed, or it goes by as it is read. */
  request: Value | undefined;
  /** There was one, whether it was parsed or not. */
  hasRequest: boolean;
  /** As it is sent; anything but text and bytes is not recorded. */
  response: unknown;
  requestSchema: z.ZodType | undefined;
  responseSchema: z.ZodType | undefined;
};

type Part = Pick<AuditOutcome, 'requestObject' | 'responseObject' | 'annotations'>;

/** Why a body is missing from a record, instead of it. */
const OMITTED = { request: 'colonnade/request-body', response: 'colonnade/response-body' } as const;

/** The bodies a level asks for, without their secrets. */
export function recordBodies(bodies: Bodies): Part {
  const { level, status } = bodies;
  if (!isAtLeast(level, 'Request')) return {};
  const accepted = status < 400;
  const request = recordRequest(bodies, accepted);
  if (level !== 'RequestResponse') return request;
  const response = recordResponse(bodies, accepted);
  return { ...request, ...response, annotations: { ...request.annotations, ...response.annotations } };
}

function recordRequest({ request, hasRequest, requestSchema }: Bodies, accepted: boolean): Part {
  if (!hasRequest) return {};
  const masked =
    requestSchema === undefined || request === undefined
      ? undefined
      : maskBody(requestSchema, request, accepted);
  if (masked === undefined) return omitted('request', requestSchema);
  return { requestObject: masked };
}

function recordResponse({ response, responseSchema }: Bodies, accepted: boolean): Part {
  const isBytes = typeof response === 'string' || response instanceof Uint8Array;
  if (!isBytes || response.length === 0) return {};
  if (response.length > MAX_EVENT_BYTES) return { annotations: { [AUDIT_TRUNCATED]: 'true' } };
  const schema = accepted ? responseSchema : zProblem;
  const value = schema === undefined ? undefined : parse(response);
  const masked = schema === undefined || value === undefined ? undefined : maskBody(schema, value, accepted);
  return masked === undefined ? omitted('response', schema) : { responseObject: masked };
}

function parse(text: string | Uint8Array): Value | undefined {
  try {
    return parseValue(text);
  } catch {
    return undefined;
  }
}

function omitted(which: keyof typeof OMITTED, schema: z.ZodType | undefined): Part {
  const why = schema === undefined ? 'omitted: no schema' : 'omitted: not of its schema';
  return { annotations: { [OMITTED[which]]: why } };
}
