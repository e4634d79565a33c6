import type { AuditOutcome, Auditor, AuditRequest } from '@colonnade/audit';
import type { PlannedRun } from './plan-run.ts';
import type { HookResult, RunResult } from './run/run-hooks.ts';

const RUNNER = 'system:hook-runner';

/**
 * Puts on record every hook that warned, failed, was killed or slow, and a run that could not be done at all. What a hook
 * wrote is not in it: that may be anything.
 * @throws ColonnadeError `bus_unavailable`
 */
export async function recordRun(
  auditor: Auditor,
  planned: Pick<PlannedRun, 'id' | 'event' | 'subject'>,
  result: RunResult,
): Promise<void> {
  const noted = result.results.filter(({ status, slow }) => status !== 'ok' || slow);
  const records = noted.map((one) =>
    auditor.begin(requestOf(planned, one.hook)).completeBatched(outcomeOf(planned, one)),
  );
  if (result.fault !== undefined) {
    const { code, message } = result.fault;
    const outcome = { code: 500, reason: code, message, annotations: annotationsOf(planned, 'error') };
    records.push(auditor.begin(requestOf(planned, undefined)).completeBatched(outcome));
  }
  await Promise.all(records);
}

function requestOf({ event }: Pick<PlannedRun, 'event'>, hook: string | undefined): AuditRequest {
  return {
    verb: 'run',
    requestURI: `hooks:${event}`,
    user: { username: RUNNER, groups: ['hook-runner'] },
    objectRef: { resource: 'hooks', namespace: event, ...(hook === undefined ? {} : { name: hook }) },
  };
}

const CODES = { ok: 200, warning: 200, error: 500, killed: 504, unknown: 500 } as const;

function outcomeOf(
  planned: Pick<PlannedRun, 'id' | 'subject'>,
  { status, reason, slow }: HookResult,
): AuditOutcome {
  const outcome = slow && status === 'ok' ? 'slow' : status;
  return {
    code: CODES[status],
    reason: outcome,
    message: reason,
    annotations: annotationsOf(planned, outcome),
  };
}

function annotationsOf({ id, subject }: Pick<PlannedRun, 'id' | 'subject'>, status: string) {
  return { 'colonnade/hook-status': status, 'colonnade/run': id, 'colonnade/subject': subject };
}
