import { LIMITS, zLimits } from '@colonnade/contracts';
import type { PillarApiConfig } from '../config.ts';
import { defineRoute, type Route } from '../http/route.ts';

/** What of the rates is a setting. */
export type RateSettings = Pick<
  PillarApiConfig,
  'requestsPerMinute' | 'requestsBurst' | 'denialsPerMinute' | 'eventsPerMinute'
>;

/** `GET /limits` */
export function limitsRoute(rates: RateSettings): Route {
  return defineRoute({
    method: 'GET',
    url: '/limits',
    permission: 'self:read',
    scope: 'none',
    idempotency: 'ignored',
    response: zLimits,
    async handle() {
      const body = {
        limits: LIMITS,
        rates: {
          requests_per_minute: rates.requestsPerMinute,
          requests_burst: rates.requestsBurst,
          denials_per_minute: rates.denialsPerMinute,
          events_per_minute: rates.eventsPerMinute,
          change_streams: LIMITS.changeStreams,
        },
      };
      return { status: 200, body };
    },
  });
}
