import { isIP } from 'node:net';
import { auditSettings } from '@colonnade/audit';
import { storeSettings, withStoreUrl } from '@colonnade/estate-store/settings';
import {
  busSettings,
  type ConfigOf,
  logSettings,
  oneOf,
  optionalSetting,
  type Parse,
  readConfig,
  setting,
  zCount,
  zFlag,
  zMs,
  zPath,
  zPort,
  zText,
} from '@colonnade/service-kit';
import { DELETION_HOOKS } from './routes/lifecycle.ts';

/** Milliseconds that must not be next to nothing: the value paces a loop or bounds a wait. */
const zMsFrom =
  (min: number): Parse<number> =>
  (text) => {
    const value = zMs(text);
    if (value < min) throw new Error(`must be at least ${min}`);
    return value;
  };

/** @returns the text as Fastify takes it */
function zAddresses(text: string): string {
  const parts = text.split(',').map((part) => part.trim());
  for (const part of parts) {
    const [address = '', bits = '0'] = part.split('/', 2);
    const max = isIP(address) === 6 ? 128 : 32;
    if (isIP(address) === 0 || !/^\d{1,3}$/u.test(bits) || Number(bits) > max) {
      throw new Error('must be addresses or networks such as 10.0.0.0/8, separated by commas');
    }
  }
  return parts.join(',');
}

/** Every setting of pillar-api; the README's table is checked against it. */
export const settings = {
  httpHost: setting('HTTP_HOST', zText, { default: '127.0.0.1', help: 'Address the API listens on' }),
  httpPort: setting('HTTP_PORT', zPort, { default: '8080', help: 'Port of the API; 0: any free one' }),
  ...storeSettings,
  storeRestored: setting('STORE_RESTORED', zFlag, {
    default: 'false',
    help: 'Set for one start after an older store was put back: nothing cached anywhere is used then',
  }),
  ...busSettings('pillar-api'),
  bootstrapTokenFile: optionalSetting('BOOTSTRAP_TOKEN_FILE', zPath, {
    help: 'File (0600) with the first admin token, registered while no admin token is valid',
  }),
  metricsAnonymous: setting('METRICS_ANONYMOUS', zFlag, {
    default: 'false',
    help: 'Show /metrics without a token; otherwise any role may see it',
  }),
  denialsPerMinute: setting('DENIALS_PER_MINUTE', zCount, {
    default: '60',
    help: 'Denied requests of one address or user that get a record in a minute; more are 429',
  }),
  requestBudgetMs: setting('REQUEST_BUDGET_MS', zMsFrom(100), {
    default: '5000',
    help: 'Time a request may spend waiting for other services, milliseconds',
  }),
  deletionHooks: setting('DELETION_HOOKS', oneOf(DELETION_HOOKS), {
    default: 'required',
    help: '`required`: hook-runner is asked before a minion is deleted; `off`: nobody is, where there is no hook-runner',
  }),
  relayPollMs: setting('RELAY_POLL_MS', zMsFrom(10), {
    default: '250',
    help: 'How often the relay looks for events that other processes wrote, milliseconds',
  }),
  relayLeaseMs: setting('RELAY_LEASE_MS', zMsFrom(1000), {
    default: '10000',
    help: 'How long a dead relay keeps the others waiting, milliseconds',
  }),
  outboxMaxAgeMs: setting('OUTBOX_MAX_AGE_MS', zMs, {
    default: '60000',
    help: 'Not ready while an event waits longer than this for NATS, milliseconds',
  }),
  ...auditSettings,
  trustedProxies: optionalSetting('TRUSTED_PROXIES', zAddresses, {
    help: 'Addresses and networks (a.b.c.d/n) of proxies, separated by commas, whose X-Forwarded-For counts',
  }),
  ...logSettings,
};

export type PillarApiConfig = ConfigOf<typeof settings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readPillarApiConfig(env: Readonly<Record<string, string | undefined>>): PillarApiConfig {
  return readConfig(settings, withStoreUrl(env));
}
