import { setTimeout as sleep } from 'node:timers/promises';
import type { Bus, DurableMessage } from '@colonnade/bus';
import {
  AUDIT_ALERT_SUBJECT,
  AUDIT_BACKENDS,
  type AuditAlertKind,
  buildAuditAlert,
  encode,
  startCall,
  zCloudEvent,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { Events } from './events.ts';

const BUDGET_MS = 2000;
const RETRY_MS = 1000;

/** What is raised and not yet told. Disposing tries no further. */
export type Alerts = AsyncDisposable & {
  raise(alert: AuditAlertKind, backend: string, details: Value): void;
};

/**
 * Tells the bus of alerts, beside the work, until the stream has each. The message id of an alert is the same for every replica and
 * every time: within the stream's window for duplicates, two minutes, it is told once.
 */
export function createAlerts(bus: Pick<Bus, 'publishDurable'>, events: Pick<Events, 'alertUntold'>): Alerts {
  const untold = new Map<string, DurableMessage>();
  const stopped = new AbortController();
  let telling: Promise<void> | undefined;
  const tell = async (): Promise<void> => {
    for (let attempt = 1; untold.size > 0 && !stopped.signal.aborted; attempt += 1) {
      try {
        for (const [key, message] of untold) {
          await bus.publishDurable(message, startCall(BUDGET_MS));
          untold.delete(key);
        }
      } catch (thrown) {
        if (attempt === 1) events.alertUntold(thrown);
        await sleep(RETRY_MS, undefined, { signal: stopped.signal, ref: false }).catch(() => undefined);
      }
    }
    telling = undefined;
  };
  return {
    raise(alert, name, details) {
      const backend = AUDIT_BACKENDS.find((one) => one === name);
      if (backend === undefined) return;
      const msgId = `${alert}:${backend}`;
      const payload = encode(zCloudEvent, buildAuditAlert(alert, backend, details));
      untold.set(msgId, { subject: AUDIT_ALERT_SUBJECT, msgId, payload, allowDuplicate: true });
      telling ??= tell();
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await telling;
    },
  };
}

/** What happens here, of which some is an alert beside its log line. */
export function raisingAlerts(events: Events, { raise }: Pick<Alerts, 'raise'>): Events {
  return {
    ...events,
    backlogAlert(backend, waiting, ratio) {
      events.backlogAlert(backend, waiting, ratio);
      raise('backlog', backend, { waiting: BigInt(waiting), percent: BigInt(Math.round(ratio * 100)) });
    },
    backendFailing(backend, error) {
      events.backendFailing(backend, error);
      raise('backend_failing', backend, { code: codeOf(error) });
    },
    gapRefused(gap) {
      events.gapRefused(gap);
      raise('gap_refused', gap.backend, { from: BigInt(gap.from), to: BigInt(gap.to) });
    },
    gapWritten(gap) {
      events.gapWritten(gap);
      const { reason, from, to, count } = gap;
      raise('gap', gap.backend, { reason, from: BigInt(from), to: BigInt(to), count: BigInt(count) });
    },
  };
}

/** Of the system (`ENOSPC`) or of ours; a message may name more than everybody who reads events should see. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown';
}
