import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AuditOutcome, type Auditor, type AuditSpan, pillarRef as pillarRefOf } from '@colonnade/audit';
import {
  AUDIT_ON_BEHALF_OF,
  type BusUser,
  type Call,
  type ColonnadeError,
  type Endpoint,
  type ErrorCode,
  type ObjectRef,
  type OpenContext,
  toColonnadeError,
} from '@colonnade/contracts';
import type { RecordQueue } from './record-queue.ts';

/** Who asks this service for what; the caller is in the subject, the user is whoever it asks for. */
type Act = {
  verb: string;
  call: Call;
  endpoint: Endpoint;
  user: { username: string; groups: readonly string[] };
  caller: BusUser;
  objectRef?: ObjectRef;
};

/** Begins the record of one request for whoever turns out to ask. */
export type BeginAs = (user: Act['user']) => AuditSpan;

export type Trail = {
  begin(act: Act): AuditSpan;
  /** Hands the record over to be stored; the answer does not wait for the stream. @throws ColonnadeError `overloaded` */
  later(span: AuditSpan, outcome: AuditOutcome, call: Call): Promise<void>;
};

export const ANONYMOUS = { username: 'system:anonymous', groups: ['system:unauthenticated'] } as const;

export function createTrail(auditor: Auditor, queue: RecordQueue): Trail {
  return {
    begin: ({ verb, call, endpoint, user, caller, objectRef }) =>
      auditor.begin({
        verb,
        requestURI: `nats:${endpoint.subject}`,
        user,
        userAgent: caller,
        // One id finds the request over HTTP and what was done for it here.
        ...(call.auditID === undefined ? {} : { auditID: call.auditID }),
        ...(objectRef === undefined ? {} : { objectRef }),
        ...(call.user === undefined || call.user === user.username
          ? {}
          : { annotations: { [AUDIT_ON_BEHALF_OF]: call.user } }),
      }),
    later(span, outcome, call) {
      const store = async () => {
        // Whoever asked need not wait while the record is made.
        await nextTurn();
        await span.completeUntilStored(outcome);
      };
      return queue.add(store, call);
    },
  };
}

/**
 * Runs something that must not have an answer without a record: the record of its success or failure is acknowledged
 * before the caller learns of either.
 * @throws ColonnadeError what the work threw, or `bus_unavailable` when there is no record
 */
export async function onRecord<T>(
  span: AuditSpan,
  work: () => Promise<T>,
  annotate?: (result: T) => Readonly<Record<string, string>>,
): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (thrown) {
    await span.complete(failure(toColonnadeError(thrown)));
    throw thrown;
  }
  await span.complete({ code: 200, ...(annotate === undefined ? {} : { annotations: annotate(result) }) });
  return result;
}

/**
 * Finds out who asks. A refusal is on record too, as nobody's, before the caller learns of it.
 * @throws what `verify` threw, or ColonnadeError `bus_unavailable` when there is no record
 */
export async function verifyOnRecord<T>(begin: BeginAs, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (thrown) {
    await begin(ANONYMOUS).complete(failure(toColonnadeError(thrown)));
    throw thrown;
  }
}

/** As onRecord, for a change: it is not even begun before it is on record. */
export async function changeOnRecord<T>(span: AuditSpan, work: () => Promise<T>): Promise<T> {
  await span.received();
  return onRecord(span, work);
}

export function failure(error: ColonnadeError, annotations?: Readonly<Record<string, string>>): AuditOutcome {
  return {
    code: STATUS[error.code] ?? 500,
    reason: error.code,
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** A pillar in an audit record: its target and name, which are no secrets. */
export function pillarRef(context: OpenContext): ObjectRef {
  return pillarRefOf({ tgtType: context.tgt_type, tgtId: context.tgt_id, name: context.name });
}

/** HTTP statuses for the records of what a caller did wrong; everything else is 500. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  kms_refused: 403,
  conflict: 409,
  too_large: 413,
  value_invalid: 422,
  kid_unknown: 422,
  decrypt_failed: 422,
  rate_limited: 429,
  overloaded: 503,
  unavailable: 503,
  expired: 504,
};
