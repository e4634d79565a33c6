import type { AuditOutcome, Auditor, AuditRequest } from '@colonnade/audit';
import type { PlannedRun } from './plan-run.ts';
import type { HookResult, RunResult } from './run/run-hooks.ts';

const RUNNER = 'system:hook-runner';

/**
 * Puts on record every run in which a hook ran, every hook that warned, failed, was killed or slow, and a run that could not be done at
 * all. A policy may leave out runs that nothing is to be said of, no other record. What a hook wrote is not in it: that may be anything.
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
  const run = outcomeOfRun(planned, result);
  const floor = noted.length > 0 || result.fault !== undefined;
  if (run !== undefined) {
    records.push(auditor.begin({ ...requestOf(planned, undefined), floor }).completeBatched(run));
  }
  await Promise.all(records);
}

/** Of a run without hooks there is nothing to tell. */
function outcomeOfRun(
  planned: Pick<PlannedRun, 'id' | 'subject'>,
  { status, results, fault }: RunResult,
): AuditOutcome | undefined {
  if (fault !== undefined) {
    const annotations = annotationsOf(planned, 'error');
    return { code: 500, reason: fault.code, message: fault.message, annotations };
  }
  if (results.length === 0) return undefined;
  const annotations = {
    ...annotationsOf(planned, status),
    'colonnade/hooks': results.map(({ hook }) => hook).join(' '),
  };
  return { code: CODES[status], reason: status, annotations };
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
