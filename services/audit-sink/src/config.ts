import { auditPolicySettings } from '@colonnade/audit';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';
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
  zFlag,
  zMs,
  zPath,
  zPort,
  zText,
} from '@colonnade/service-kit';
import { LOG_FORMATS } from './file/format.ts';

/** At least one. */
const zPositive: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < 1) throw new Error('must be at least 1');
  return count;
};

const zMegabytes: Parse<number> = (text) => {
  const count = zPositive(text);
  if (count > 1_000_000) throw new Error('must be at most 1000000');
  return count;
};

const zAnchorMs: Parse<number> = (text) => {
  const ms = zMs(text);
  if (ms < 100) throw new Error('must be at least 100');
  return ms;
};

const zRate: Parse<number> = (text) => {
  const rate = /^\d{1,6}(\.\d{1,3})?$/u.test(text) ? Number(text) : 0;
  if (rate <= 0) throw new Error('must be a number above 0');
  return rate;
};

const zPercent: Parse<number> = (text) => {
  const percent = zPositive(text);
  if (percent > 100) throw new Error('must be at most 100');
  return percent;
};

const zNames: Parse<readonly string[]> = (text) =>
  zText(text)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Kubernetes' `--audit-webhook-*`, with its defaults (seed 001). */
const webhookSettings = {
  webhookConfigFile: optionalSetting('AUDIT_WEBHOOK_CONFIG_FILE', zPath, {
    help: 'kubeconfig file with address and credentials of the webhook; unset: no webhook',
  }),
  webhookPolicyFile: optionalSetting('AUDIT_WEBHOOK_POLICY_FILE', zPath, {
    help: 'audit policy that says which records go to the webhook, and how much of them; read again as any policy; unset: all',
  }),
  webhookInitialBackoffMs: setting('AUDIT_WEBHOOK_INITIAL_BACKOFF_MS', zMs, {
    help: 'pause after the first failure; each further one is half as long again, five minutes at most',
    default: '10000',
  }),
  webhookBatchMaxSize: setting('AUDIT_WEBHOOK_BATCH_MAX_SIZE', zPositive, {
    help: 'events in one request',
    default: '400',
  }),
  webhookBatchMaxWaitMs: setting('AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS', zMs, {
    help: 'how long a batch that is not full is waited for',
    default: '30000',
  }),
  webhookThrottleQps: setting('AUDIT_WEBHOOK_BATCH_THROTTLE_QPS', zRate, {
    help: 'requests a second',
    default: '10',
  }),
  webhookThrottleBurst: setting('AUDIT_WEBHOOK_BATCH_THROTTLE_BURST', zPositive, {
    help: 'requests at once after a rest',
    default: '15',
  }),
  webhookTruncate: setting('AUDIT_WEBHOOK_TRUNCATE_ENABLED', zFlag, {
    help: 'drop the bodies of events that are over the limit',
    default: 'false',
  }),
  webhookMaxEventBytes: setting('AUDIT_WEBHOOK_TRUNCATE_MAX_EVENT_SIZE', zBytesCount, {
    help: 'that limit, bytes',
    default: '102400',
  }),
  webhookMaxBatchBytes: setting('AUDIT_WEBHOOK_TRUNCATE_MAX_BATCH_SIZE', zBytesCount, {
    help: 'bytes of one request; kept also without truncating',
    default: '10485760',
  }),
  webhookMaxBacklog: setting('AUDIT_WEBHOOK_MAX_BACKLOG', zPositive, {
    help: 'events that may wait for the webhook; beyond that it skips ahead, on record',
    default: '1000000',
  }),
  webhookMaxStreamPercent: setting('AUDIT_WEBHOOK_MAX_STREAM_PERCENT', zPercent, {
    help: "percent of the stream's space that what waits for the webhook alone may take",
    default: '80',
  }),
};

/** The endpoint for a kube-apiserver's webhook. */
const ingestSettings = {
  ingestPort: optionalSetting('INGEST_PORT', zPort, {
    help: 'port of the HTTPS endpoint for EventLists; 0: any free one; unset: no such endpoint',
  }),
  ingestHost: setting('INGEST_HOST', zText, { help: 'its address', default: '127.0.0.1' }),
  ingestCertFile: optionalSetting('INGEST_TLS_CERT_FILE', zPath, { help: 'its certificate, PEM' }),
  ingestKeyFile: optionalSetting('INGEST_TLS_KEY_FILE', zPath, { help: 'the key of it, PEM' }),
  ingestClientCaFile: optionalSetting('INGEST_CLIENT_CA_FILE', zPath, {
    help: 'CA whose client certificates are let in',
  }),
  ingestClientNames: optionalSetting('INGEST_CLIENT_NAMES', zNames, {
    help: 'common names that are let in, separated by commas; unset: all of that CA',
  }),
  ingestToken: optionalSecretSetting('INGEST_TOKEN', { help: 'bearer token that is let in' }),
  ingestMaxBytes: setting('INGEST_MAX_BYTES', zBytesCount, {
    help: 'largest EventList',
    default: '33554432',
  }),
};

export const auditSinkSettings = {
  logPath: setting('AUDIT_LOG_PATH', zPath, {
    help: 'the log file; `-`: standard output, where each record stands at least once',
  }),
  logFormat: setting('AUDIT_LOG_FORMAT', oneOf(LOG_FORMATS), {
    help: '`json`: one event a line; `legacy`: the one-line text of Kubernetes',
    default: 'json',
  }),
  logPolicyFile: optionalSetting('AUDIT_LOG_POLICY_FILE', zPath, {
    help: 'audit policy that says which records go to the file, and how much of them; read again as any policy; unset: all',
  }),
  logMaxAgeDays: setting('AUDIT_LOG_MAXAGE', zCount, {
    help: 'days a rotated file is kept; 0: for ever',
    default: '366',
  }),
  logMaxBackups: setting('AUDIT_LOG_MAXBACKUP', zCount, {
    help: 'rotated files kept; 0: all',
    default: '100',
  }),
  logMaxSizeMb: setting('AUDIT_LOG_MAXSIZE', zMegabytes, {
    help: 'megabytes (1024 × 1024 bytes) of a file before it is rotated',
    default: '100',
  }),
  logCompress: setting('AUDIT_LOG_COMPRESS', zFlag, { help: 'gzip rotated files', default: 'false' }),
  logFsync: setting('AUDIT_LOG_FSYNC', oneOf(['always', 'batch', 'never']), {
    help: '`always`: each record alone; `batch`: what came together; `never`: left to the system, a power cut may take the end',
    default: 'batch',
  }),
  logAcceptGapTo: setting('AUDIT_LOG_ACCEPT_GAP_TO', zCount, {
    help: 'stream sequence up to which missing records are accepted, and written down as a gap',
    default: '0',
  }),
  anchorMs: setting('AUDIT_ANCHOR_MS', zAnchorMs, {
    help: "how often the hash chain's head is stored in the stream `AUDIT_ANCHORS`",
    default: '10000',
  }),
  ...webhookSettings,
  auditStrictPolicy: auditPolicySettings.auditStrictPolicy,
  ...ingestSettings,
  ...busSettings('audit-sink'),
  ...opsSettings(8084),
  ...logSettings,
};

export type AuditSinkConfig = ConfigOf<typeof auditSinkSettings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readAuditSinkConfig(env: Readonly<Record<string, string | undefined>>): AuditSinkConfig {
  const config = readConfig(auditSinkSettings, env);
  const faults = [...webhookFaults(config), ...ingestFaults(config)];
  if (faults.length === 0) return config;
  throw new ColonnadeError(
    'misconfigured',
    `the configuration is at odds with itself:\n  ${faults.join('\n  ')}`,
  );
}

/** What each setting alone cannot tell. */
function webhookFaults(config: AuditSinkConfig): string[] {
  const { webhookMaxEventBytes: event, webhookMaxBatchBytes: batch } = config;
  const faults: string[] = [];
  if (event < 1024) faults.push('AUDIT_WEBHOOK_TRUNCATE_MAX_EVENT_SIZE must be at least 1024');
  if (batch < event)
    faults.push(
      'AUDIT_WEBHOOK_TRUNCATE_MAX_BATCH_SIZE must be at least AUDIT_WEBHOOK_TRUNCATE_MAX_EVENT_SIZE',
    );
  if (batch > 16 * LIMITS.natsPayloadBytes)
    faults.push(`AUDIT_WEBHOOK_TRUNCATE_MAX_BATCH_SIZE must be at most ${16 * LIMITS.natsPayloadBytes}`);
  if (config.webhookBatchMaxSize > 4096) faults.push('AUDIT_WEBHOOK_BATCH_MAX_SIZE must be at most 4096');
  return faults;
}

function ingestFaults(config: AuditSinkConfig): string[] {
  if (config.ingestPort === undefined) return [];
  const faults: string[] = [];
  if (config.ingestCertFile === undefined) faults.push('INGEST_TLS_CERT_FILE is missing');
  if (config.ingestKeyFile === undefined) faults.push('INGEST_TLS_KEY_FILE is missing');
  if (config.ingestClientCaFile === undefined && config.ingestToken === undefined)
    faults.push('one of INGEST_CLIENT_CA_FILE and INGEST_TOKEN is needed: nobody could hand in events');
  return faults;
}
