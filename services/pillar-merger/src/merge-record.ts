import { type Auditor, type AuditRequest, mergeRef } from '@colonnade/audit';
import type { BridgeErrorCode } from '@colonnade/contracts';
import type { MergeRequest } from './answer-merge.ts';

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

/** One merge that is to be put on record. */
export type MergeRecord = {
  /**
   * Stores what is about to be given: counts and names, never a value. All merges that wait at the same moment share one
   * acknowledgement (seed 001).
   * @throws ColonnadeError `bus_unavailable`: there is no record, so nothing may be given
   */
  store(given: { clock: number; secrets: number }): Promise<void>;
};

export function beginMergeRecord(
  auditor: Auditor,
  request: Pick<MergeRequest, 'master' | 'minionId' | 'pillarenv'>,
): MergeRecord {
  const span = auditor.begin(mergeRequest(request));
  return {
    store: ({ clock, secrets }) =>
      span.completeBatched({
        code: 200,
        annotations: {
          'colonnade/pillarenv': request.pillarenv.slice(0, MAX_PILLARENV_CHARS).toWellFormed(),
          'colonnade/clock': String(clock),
          'colonnade/secrets': String(secrets),
        },
      }),
  };
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
