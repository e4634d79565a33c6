import { isIP } from 'node:net';
import { auditSettings } from '@colonnade/audit';
import { LIMITS } from '@colonnade/contracts';
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
  zSeconds,
  zText,
  zUrl,
} from '@colonnade/service-kit';
import { OIDC_ALGORITHMS } from './auth/oidc.ts';
import { DELETION_HOOKS } from './routes/lifecycle.ts';

/** Milliseconds that must not be next to nothing: the value paces a loop or bounds a wait. */
const zMsFrom =
  (min: number): Parse<number> =>
  (text) => {
    const value = zMs(text);
    if (value < min) throw new Error(`must be at least ${min}`);
    return value;
  };

const zSecondsFrom =
  (min: number): Parse<number> =>
  (text) => {
    const value = zSeconds(text);
    if (value < min) throw new Error(`must be at least ${min}`);
    return value;
  };

const zPositive: Parse<number> = (text) => {
  const value = zCount(text);
  if (value < 1) throw new Error('must be at least 1');
  return value;
};

/** @returns the names, each one that this program takes */
const zAlgorithms: Parse<readonly string[]> = (text) => {
  const names = text.split(',').map((name) => name.trim());
  const known: readonly string[] = OIDC_ALGORITHMS;
  if (names.every((name) => known.includes(name))) return names;
  throw new Error(`must be of ${known.join(', ')}, separated by commas`);
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
  oidcIssuer: optionalSetting('OIDC_ISSUER', zUrl('https:', 'http:'), {
    help: 'Issuer whose bearer tokens are taken beside API tokens, as `iss` has it; `http` only on this host',
  }),
  oidcAudience: optionalSetting('OIDC_AUDIENCE', zText, { help: '`aud` such a token must have' }),
  oidcAlgorithms: setting('OIDC_ALGORITHMS', zAlgorithms, {
    default: 'RS256,PS256,ES256,EdDSA',
    help: 'Signatures that are taken, separated by commas; none with a shared secret',
  }),
  oidcSubClaim: setting('OIDC_SUB_CLAIM', zText, {
    default: 'sub',
    help: 'Claim that names the user; nobody may be able to choose it',
  }),
  oidcGroupsClaim: setting('OIDC_GROUPS_CLAIM', zText, {
    default: 'groups',
    help: 'Claim, or path of claims with dots, that lists his groups',
  }),
  oidcRolesFile: optionalSetting('OIDC_ROLES_FILE', zPath, {
    help: 'JSON list of `group`, `role` and optional scope: what the groups may do',
  }),
  oidcMaxTokenAgeS: setting('OIDC_MAX_TOKEN_AGE_S', zSecondsFrom(60), {
    default: '3600',
    help: 'A token issued longer ago is refused whatever its `exp` says, seconds',
  }),
  requestsPerMinute: setting('REQUESTS_PER_MINUTE', zPositive, {
    default: '30000',
    help: 'Requests one API token, or user of the issuer, may make in a minute; more are 429',
  }),
  requestsBurst: setting('REQUESTS_BURST', zPositive, {
    default: '5000',
    help: 'Of them at once, after a pause',
  }),
  eventsPerMinute: setting('EVENTS_PER_MINUTE', zPositive, {
    default: '600',
    help: 'Events one service may publish in a minute, in each process, also all at once; more are 429',
  }),
  denialsPerMinute: setting('DENIALS_PER_MINUTE', zCount, {
    default: '60',
    help: 'Denied requests of one address or user that get a record in a minute; more are 429',
  }),
  requestBudgetMs: setting('REQUEST_BUDGET_MS', zMsFrom(100), {
    default: '5000',
    help: 'Time a request may spend waiting for other services, milliseconds',
  }),
  changesPollMs: setting('CHANGES_POLL_MS', zMsFrom(10), {
    default: '500',
    help: 'How often readers of /changes hear what other processes wrote, milliseconds',
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
  historyKeepVersions: optionalSetting('HISTORY_KEEP_VERSIONS', zPositive, {
    help: 'Newest versions kept of each pillar, the one it is now among them; unset: all',
  }),
  historyKeepDays: optionalSetting('HISTORY_KEEP_DAYS', zPositive, {
    help: 'Days a version is kept after it was replaced, or its pillar deleted; unset: for ever',
  }),
  historyRunMs: setting('HISTORY_RUN_MS', zMs, {
    default: '3600000',
    help: 'How often old versions are removed, milliseconds; 0: only when asked',
  }),
  rewrapPerSecond: setting('REWRAP_PER_SECOND', zPositive, {
    default: '1000',
    help: 'Values brought under the newest key in a second at most, of the whole estate',
  }),
  rewrapRunMs: setting('REWRAP_RUN_MS', zMs, {
    default: '60000',
    help: 'How often it is looked whether values stand under an older key, milliseconds; 0: only when asked',
  }),
  minionsPerMaster: setting('MINIONS_PER_MASTER', zCount, {
    default: String(LIMITS.minionsPerMaster),
    help: 'Minions up to which a master gets new ones registered by their first request',
  }),
  minionsPerMinute: setting('MINIONS_PER_MINUTE', zPositive, {
    default: String(LIMITS.minionsPerMinute),
    help: 'New minions of one master registered in a minute, in each process; more wait for their next request',
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
