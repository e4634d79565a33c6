import { type Auditor, type AuditRequest, mergeRef } from '@colonnade/audit';
import type { BridgeErrorCode } from '@colonnade/contracts';
import type { MergeAnswer, MergeRequest } from './answer-merge.ts';

/** Of the pillarenv in a record, characters. */
export const MAX_PILLARENV_CHARS = 1024;

/** A merge as an audit record and a policy see it: the master reads the pillar of one of its minions. */
export function mergeRequest({ master, minionId }: { master: string; minionId: string | undefined }) {
  return {
    verb: 'get',
    requestURI: `/bridge/${encodeURIComponent(master)}/${encodeURIComponent(minionId ?? '')}`,
    user: { username: `master:${master}`, groups: ['colonnade:masters'] },
    objectRef: mergeRef(master, minionId),
  } satisfies AuditRequest;
}

/**
 * Runs a merge and puts it on record: counts and names, never a value. The answer is given only when the stream has the
 * record, which all merges that wait at the same moment share (seed 001).
 * @throws ColonnadeError what the merge threw, or `bus_unavailable`: there is no record
 */
export async function mergeOnRecord(
  auditor: Auditor,
  request: Pick<MergeRequest, 'master' | 'minionId' | 'pillarenv'>,
  run: () => Promise<MergeAnswer>,
): Promise<MergeAnswer> {
  const span = auditor.begin(mergeRequest(request));
  const answer = await run();
  await span.completeBatched({
    code: 200,
    annotations: {
      'colonnade/pillarenv': request.pillarenv.slice(0, MAX_PILLARENV_CHARS).toWellFormed(),
      'colonnade/clock': String(answer.clock),
      'colonnade/secrets': String(answer.secrets),
    },
  });
  return answer;
}

/** The status of HTTP that says the same as a code of the bridge. */
export function statusOf(code: BridgeErrorCode): number {
  return STATUS[code];
}

const STATUS: Readonly<Record<BridgeErrorCode, number>> = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  kms_refused: 403,
  unknown_master: 404,
  unknown_minion: 404,
  too_large: 413,
  overloaded: 429,
  internal: 500,
  unavailable: 503,
  kms_unavailable: 503,
  expired: 504,
};
