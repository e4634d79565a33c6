import { remainingMs, zNothing, zRetention, zRetentionRun } from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';
import type { HistoryRetention } from '../retention.ts';

/** A request leaves this much of its time for its answer, milliseconds. */
const ANSWER_MS = 500;

/** How much of the history is kept, which the settings say, and a run of it now. */
export function retentionRoutes(retention: HistoryRetention): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/history/retention',
      permission: 'estate:read',
      scope: 'estate',
      idempotency: 'ignored',
      response: zRetention,
      async handle() {
        const { keepVersions, keepDays, runMs } = retention.settings;
        const body = { keep_versions: keepVersions ?? null, keep_days: keepDays ?? null, run_ms: runMs };
        return { status: 200, body };
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/history/retention',
      permission: 'pillar:purge-history',
      scope: 'estate',
      idempotency: 'ignored',
      body: zNothing,
      response: zRetentionRun,
      async handle({ principal, call }) {
        const budgetMs = Math.max(0, remainingMs(call) - ANSWER_MS);
        return { status: 200, body: await retention.run(budgetMs, principal.sub) };
      },
    }),
  ];
}
