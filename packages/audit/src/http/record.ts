import { type AuditStage, ColonnadeError } from '@colonnade/contracts';
import type { RequestSpan } from '../event/auditor.ts';
import type { Backlog } from '../event/backlog.ts';
import type { AuditOutcome } from '../event/request.ts';
import type { AuditWatch } from '../event/watch.ts';
import type { AuditMode } from './modes.ts';

/** The records of one request, each stored as its mode says. */
export type RequestRecord = {
  level: RequestSpan['level'];
  /** @throws ColonnadeError `audit_unavailable`: the request must not be carried out */
  received(): Promise<void>;
  started(outcome: AuditOutcome): Promise<void>;
  /** The end, told once: later calls change nothing. @throws ColonnadeError `audit_unavailable`: withhold the answer */
  finish(outcome: AuditOutcome, options: { panicked: boolean }): Promise<void>;
};

export type RecordOptions = {
  span: RequestSpan;
  backlog: Backlog;
  watch: AuditWatch;
  mode: AuditMode;
  /** The answer may not leave without the record of its end. */
  hold: boolean;
};

export function createRequestRecord(options: RecordOptions): RequestRecord {
  const { span, backlog, watch, mode, hold } = options;
  let refused = false;
  let finished = false;

  /** What could not be stored now is stored later, as long as this process lives. */
  const storeLater = (stage: AuditStage, outcome?: AuditOutcome) => {
    const event = span.encode(stage, outcome);
    if (event !== undefined) backlog.add(event, span.triedAs(stage));
  };
  const store = async (stage: AuditStage, publish: () => Promise<void>, outcome?: AuditOutcome) => {
    if (mode === 'batch' || refused) return storeLater(stage, outcome);
    await publish();
  };
  const unavailable = (what: string, cause: unknown) => {
    watch.rejected({ auditID: span.auditID, error: cause });
    return new ColonnadeError('audit_unavailable', what, { cause });
  };

  return {
    level: span.level,
    async received() {
      try {
        await store('RequestReceived', () => span.received());
      } catch (thrown) {
        if (mode === 'blocking') return storeLater('RequestReceived');
        refused = true;
        throw unavailable('the request could not be put on record, so nothing was done', thrown);
      }
    },
    async started(outcome) {
      const publish = () => span.started(outcome);
      await store('ResponseStarted', publish, outcome).catch(() => storeLater('ResponseStarted', outcome));
    },
    async finish(outcome, { panicked }) {
      if (finished) return;
      finished = true;
      const stage = panicked ? 'Panic' : 'ResponseComplete';
      const publish = () => (panicked ? span.panicked(outcome) : span.complete(outcome));
      try {
        await store(stage, publish, outcome);
      } catch (thrown) {
        storeLater(stage, outcome);
        if (hold) throw unavailable(withheld(outcome), thrown);
      }
    },
  };
}

function withheld({ code }: AuditOutcome): string {
  const done = code < 400 ? 'the request was carried out, but its end' : 'the end of the request';
  return `${done} could not be put on record; the answer is withheld`;
}
