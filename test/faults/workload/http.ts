import { randomUUID } from 'node:crypto';
import type { ApiAnswer, ApiClient } from '@colonnade/embedded';
import { findTraces } from '../../support/search-traces.ts';
import { callTime, count, type History, returnTime, violate } from '../history.ts';

/** What became of a request: done, certainly not done, or nobody knows. */
export type Sent = { call: number; return: number; auditId: string } & (
  | { outcome: 'ok'; answer: ApiAnswer }
  | { outcome: 'refused'; status: number; code: string }
  | { outcome: 'unknown' }
);

export type Send = (
  method: string,
  where: string,
  body?: Parameters<ApiClient['send']>[2],
  headers?: Record<string, string>,
) => Promise<Sent>;

/** Statuses that say: it is not as you think. Any other refusal would blame the caller for a fault of ours. */
const REFUSED: ReadonlySet<number> = new Set([404, 409, 412]);

/** pillar-api as a client under faults sees it. Every request has an Audit-ID of its own. */
export function createSender(api: ApiClient, history: History, canary: string): Send {
  return async (method, where, body, headers = {}) => {
    const auditId = randomUUID();
    const call = callTime();
    const answer = await api
      .send(method, where, body, { ...headers, 'audit-id': auditId })
      .catch(() => undefined);
    const times = { call, return: returnTime(), auditId };
    if (answer === undefined) {
      count(history.refusals, 'http: no answer');
      return { ...times, outcome: 'unknown' };
    }
    if (answer.status < 300) return { ...times, outcome: 'ok', answer };
    const code = String((answer.value as Record<string, unknown> | undefined)?.code);
    count(history.refusals, `http: ${answer.status} ${code}`);
    const text = JSON.stringify(answer.value, (_, v) => (typeof v === 'bigint' ? String(v) : v)) ?? '';
    for (const trace of findTraces('an HTTP error', Buffer.from(text), [canary]))
      violate(history, 'leak', trace);
    // Both say that no retry helps: a fault that passes by itself is neither.
    if (code === 'internal' || code === 'misconfigured') {
      violate(history, 'wrong refusal', `${method} ${where}: ${answer.status} ${code}, Audit-ID ${auditId}`);
    }
    if (answer.status >= 500 || code === 'in_flight') return { ...times, outcome: 'unknown' };
    if (!REFUSED.has(answer.status)) {
      violate(history, 'wrong refusal', `${method} ${where}: ${answer.status} ${code}`);
    }
    return { ...times, outcome: 'refused', status: answer.status, code };
  };
}
