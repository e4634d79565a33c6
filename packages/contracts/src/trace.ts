import { randomFillSync } from 'node:crypto';

/** What travels with every call: the W3C trace context and the moment after which nobody waits for the answer. */
export type Call = {
  traceparent: string;
  /** Milliseconds on this process's `performance.now()` clock; two machines' clocks are never compared. */
  deadlineMs: number;
  /** Audit-ID of the HTTP request that the call is made for: what is recorded on its way bears the same. Chosen by a client. */
  auditID?: string;
  /** Name of the user that the call is made for, as the one who asks says it: for records, never to decide anything by. */
  user?: string;
};

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/u;

/** Starts a call here: a new trace, `budgetMs` milliseconds from now. */
export function startCall(budgetMs: number, traceparent?: string): Call {
  return { traceparent: childTraceparent(traceparent), deadlineMs: performance.now() + budgetMs };
}

/** A call with a time of its own, in the same trace, for the same user and request. */
export function restartCall(budgetMs: number, call: Call): Call {
  return { ...call, ...startCall(budgetMs, call.traceparent) };
}

/** Milliseconds left of a call, never below 0. */
export function remainingMs(call: Call): number {
  return Math.max(0, Math.floor(call.deadlineMs - performance.now()));
}

/** A new span in the given trace; a missing or malformed parent starts a new trace (W3C Trace Context, level 1). */
export function childTraceparent(parent?: string): string {
  const match = parent === undefined ? null : TRACEPARENT.exec(parent);
  const known =
    match?.[1] !== undefined && !/^0+$/u.test(match[1]) && match[2] !== undefined && !/^0+$/u.test(match[2]);
  const traceId = known ? match[1] : randomHex(16);
  const flags = known ? match[3] : '01';
  return `00-${traceId}-${randomHex(8)}-${flags}`;
}

/** Ids are drawn from a pool: a merge makes a dozen, and asking the system for each would take 5 µs of its time. */
const pool = { bytes: Buffer.allocUnsafeSlow(4096), used: 4096 };

function randomHex(bytes: number): string {
  if (pool.used + bytes > pool.bytes.length) {
    randomFillSync(pool.bytes);
    pool.used = 0;
  }
  pool.used += bytes;
  return pool.bytes.toString('hex', pool.used - bytes, pool.used);
}

/** The trace id of a traceparent, for logs. */
export function traceIdOf(traceparent: string): string {
  return TRACEPARENT.exec(traceparent)?.[1] ?? 'none';
}
