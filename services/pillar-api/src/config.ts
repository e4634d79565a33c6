import { isIP } from 'node:net';
import { auditSettings } from '@colonnade/audit';
import { LIMITS } from '@colonnade/contracts';
import { storeSettings, withStoreUrl } from '@colonnade/estate-store/settings';
import {
  type ConfigOf,
  LOG_LEVELS,
  oneOf,
  optionalSetting,
  type Parse,
  readConfig,
  secretSetting,
  setting,
  zCount,
  zFlag,
  zMs,
  zPath,
  zPort,
  zText,
} from '@colonnade/service-kit';

/** Milliseconds that must not be next to nothing: the value paces a loop or bounds a wait. */
const zMsFrom =
  (min: number): Parse<number> =>
  (text) => {
    const value = zMs(text);
    if (value < min) throw new Error(`must be at least ${min}`);
    return value;
  };

const zCountFrom =
  (min: number): Parse<number> =>
  (text) => {
    const value = zCount(text);
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
  natsUrl: setting('NATS_URL', zText, {
    default: 'nats://127.0.0.1:4222',
    help: 'NATS servers, separated by commas',
  }),
  natsPassword: secretSetting('NATS_PASSWORD', { help: 'Password of the NATS user pillar-api' }),
  natsCaFile: optionalSetting('NATS_CA_FILE', zPath, { help: 'CA that signed the certificate of NATS' }),
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
  historyKeepVersions: optionalSetting('HISTORY_KEEP_VERSIONS', zCountFrom(1), {
    help: 'Newest versions kept of each pillar, the one it is now among them; unset: all',
  }),
  historyKeepDays: optionalSetting('HISTORY_KEEP_DAYS', zCountFrom(1), {
    help: 'Days a version is kept after it was replaced, or its pillar deleted; unset: for ever',
  }),
  historyRunMs: setting('HISTORY_RUN_MS', zMs, {
    default: '3600000',
    help: 'How often old versions are removed, milliseconds; 0: only when asked',
  }),
  minionsPerMaster: setting('MINIONS_PER_MASTER', zCount, {
    default: String(LIMITS.minionsPerMaster),
    help: 'Minions up to which a master gets new ones registered by their first request',
  }),
  minionsPerMinute: setting('MINIONS_PER_MINUTE', zCountFrom(1), {
    default: String(LIMITS.minionsPerMinute),
    help: 'New minions of one master registered in a minute, in each process; more wait for their next request',
  }),
  ...auditSettings,
  trustedProxies: optionalSetting('TRUSTED_PROXIES', zAddresses, {
    help: 'Addresses and networks (a.b.c.d/n) of proxies, separated by commas, whose X-Forwarded-For counts',
  }),
  logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), { default: 'info', help: 'Least level that is logged' }),
};

export type PillarApiConfig = ConfigOf<typeof settings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readPillarApiConfig(env: Readonly<Record<string, string | undefined>>): PillarApiConfig {
  return readConfig(settings, withStoreUrl(env));
}
