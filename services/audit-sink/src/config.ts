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

export const auditSinkSettings = {
  logPath: setting('AUDIT_LOG_PATH', zPath, {
    help: 'the log file; `-`: standard output, where each record stands at least once',
  }),
  logFormat: setting('AUDIT_LOG_FORMAT', oneOf(LOG_FORMATS), {
    help: '`json`: one event a line; `legacy`: the one-line text of Kubernetes',
    default: 'json',
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
  natsUrl: setting('NATS_URL', zText, {
    help: 'one or several `nats://host:port`, separated by commas',
    default: 'nats://127.0.0.1:4222',
  }),
  natsPassword: secretSetting('NATS_PASSWORD', { help: 'password of the NATS user `audit-sink`' }),
  natsCaFile: optionalSetting('NATS_CA_FILE', zPath, { help: 'CA of the NATS servers; set it to speak TLS' }),
  opsHost: setting('OPS_HOST', zText, { help: 'address of health and metrics', default: '127.0.0.1' }),
  opsPort: setting('OPS_PORT', zPort, { help: 'its port; 0: any free one', default: '8083' }),
  logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), { help: 'how much is logged', default: 'info' }),
};

export type AuditSinkConfig = ConfigOf<typeof auditSinkSettings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readAuditSinkConfig(env: Readonly<Record<string, string | undefined>>): AuditSinkConfig {
  return readConfig(auditSinkSettings, env);
}
