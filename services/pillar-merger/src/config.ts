import { auditPolicySettings } from '@colonnade/audit';
import { storeSettings, withStoreUrl } from '@colonnade/estate-store/settings';
import {
  busSettings,
  type ConfigOf,
  logSettings,
  oneOf,
  opsSettings,
  optionalSecretSetting,
  optionalSetting,
  type Parse,
  readConfig,
  setting,
  zBytesCount,
  zCount,
  zMs,
  zPath,
  zPort,
  zText,
  zUrl,
} from '@colonnade/service-kit';
import { PILLARENV_POLICIES } from './entitlement.ts';

const zConcurrency: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < 1 || count > 4096) throw new Error('must be from 1 to 4096');
  return count;
};

/** `host:port`, separated by commas. */
const zSentinels: Parse<readonly { host: string; port: number }[]> = (text) =>
  text.split(',').map((one) => {
    const [, host, port] = /^([\w.-]+):(\d{1,5})$/u.exec(one.trim()) ?? [];
    if (host === undefined || port === undefined) throw new Error('must be host:port, separated by commas');
    return { host, port: zPort(port) };
  });

/** Below a hundred the mergers would do little else than look for what to take over. */
const zClaimIdle: Parse<number> = (text) => {
  const ms = zMs(text);
  if (ms < 100 || ms > 3000) throw new Error('must be from 100 to 3000 milliseconds');
  return ms;
};

export const mergerSettings = {
  ...storeSettings,
  cache: setting('CACHE', oneOf(['on', 'off']), {
    help: '`off`: nothing of the estate is kept between reads; for a store that others write to as well',
    default: 'on',
  }),
  cacheBytes: setting('CACHE_BYTES', zBytesCount, {
    help: 'memory for pieces of the estate, about',
    default: '134217728',
  }),
  pillarenvPolicy: setting('PILLARENV_POLICY', oneOf(PILLARENV_POLICIES), {
    help: '`entitled`: a minion gets only environments meant for it; `trust`: any it asks for',
    default: 'entitled',
  }),
  redisUrl: setting('REDIS_URL', zUrl('redis:', 'rediss:'), {
    help: 'the Redis of the bridge, `redis://host:port` or `rediss://…` for TLS',
    default: 'redis://127.0.0.1:6379',
  }),
  redisSentinels: optionalSetting('REDIS_SENTINELS', zSentinels, {
    help: '`host:port` of Sentinels, separated by commas; host and port of `REDIS_URL` then count for nothing',
  }),
  redisSentinelName: setting('REDIS_SENTINEL_NAME', zText, {
    help: 'what the Sentinels call the Redis of the bridge',
    default: 'colonnade-bridge',
  }),
  redisUser: optionalSetting('REDIS_USER', zText, { help: 'its user' }),
  redisPassword: optionalSecretSetting('REDIS_PASSWORD', { help: 'password of that user' }),
  redisCaFile: optionalSetting('REDIS_CA_FILE', zPath, { help: 'CA of the Redis server, with `rediss://`' }),
  concurrency: setting('MERGER_CONCURRENCY', zConcurrency, {
    help: 'requests worked on at once',
    default: '64',
  }),
  claimIdleMs: setting('MERGER_CLAIM_IDLE_MS', zClaimIdle, {
    help: 'a request nobody works on is taken over after this; at most a third of the ttl of the masters',
    default: '600',
  }),
  backlogMs: setting('MERGER_BACKLOG_MS', zMs, {
    help: 'not ready while requests wait longer than this before they are taken',
    default: '1000',
  }),
  ...auditPolicySettings,
  ...busSettings('pillar-merger'),
  ...opsSettings(8083),
  ...logSettings,
};

export type MergerConfig = ConfigOf<typeof mergerSettings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readMergerConfig(env: Readonly<Record<string, string | undefined>>): MergerConfig {
  return readConfig(mergerSettings, withStoreUrl(env));
}
