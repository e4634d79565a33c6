import { auditPolicySettings } from '@colonnade/audit';
import {
  busSettings,
  type ConfigOf,
  logSettings,
  opsSettings,
  optionalSetting,
  type Parse,
  readConfig,
  setting,
  zCount,
  zMs,
  zPath,
  zText,
} from '@colonnade/service-kit';
import { readAddresses } from './addresses.ts';

const zNames: Parse<readonly string[]> = (text) => {
  const names = zText(text)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) throw new Error('must name at least one');
  return names;
};

const zPrefixes: Parse<readonly string[]> = (text) => {
  const prefixes = zNames(text);
  if (prefixes.every((p) => /^(\/[A-Za-z0-9._-]+)+\/$/u.test(p))) return prefixes;
  throw new Error('must be folders that begin and end with a slash');
};

/** 100 ms or more: shorter would keep a core busy. */
const zPause: Parse<number> = (text) => {
  const ms = zMs(text);
  if (ms < 100) throw new Error('must be at least 100');
  return ms;
};

const zWorkers: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < 1 || count > 256) throw new Error('must be from 1 to 256');
  return count;
};

export const tlsRotatorSettings = {
  kubeconfigFile: optionalSetting('KUBECONFIG_FILE', zPath, {
    help: 'kubeconfig of the cluster; unset: the service account of the Pod',
  }),
  namespace: setting('POD_NAMESPACE', zText, {
    help: 'namespace of the rotator: of its Lease, SSH keys and known hosts',
    default: 'colonnade',
  }),
  identity: optionalSetting('POD_NAME', zText, { help: 'name in the Lease; unset: the host name' }),
  sourceNamespaces: setting('ALLOWED_SOURCE_NAMESPACES', zNames, {
    help: 'namespaces a source Secret may be in, separated by commas',
  }),
  pathPrefixes: setting('ALLOWED_NODE_PATHS', zPrefixes, {
    help: 'folders of a node that may be written to, separated by commas',
    default: '/etc/kubernetes/',
  }),
  nodeAddresses: optionalSetting('ALLOWED_NODE_ADDRESSES', readAddresses, {
    help: 'addresses and networks of nodes that may be connected to, separated by commas; unset: none',
  }),
  leaseMs: setting('LEASE_MS', zPause, {
    help: 'how long a leader that is gone is waited for',
    default: '15000',
  }),
  resyncMs: setting('RESYNC_MS', zPause, {
    help: 'everything is listed and compared anew after so long',
    default: '600000',
  }),
  watchSilenceMs: setting('WATCH_SILENCE_MS', zPause, {
    help: 'a watch without an event or bookmark for so long is made anew; an API server sends a bookmark a minute',
    default: '150000',
  }),
  nodePollMs: setting('NODE_POLL_MS', zPause, {
    help: 'pause between two looks at a node that is waited for',
    default: '2000',
  }),
  writers: setting('SECRET_WRITERS', zWorkers, { help: 'Secrets written at the same time', default: '16' }),
  spoolDir: setting('SPOOL_DIR', zPath, {
    help: 'folder for audit records and events that NATS has not taken yet; made with mode 0700',
  }),
  ...auditPolicySettings,
  ...busSettings('tls-rotator'),
  ...opsSettings(8085),
  ...logSettings,
};

export type TlsRotatorConfig = ConfigOf<typeof tlsRotatorSettings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readTlsRotatorConfig(env: Readonly<Record<string, string | undefined>>): TlsRotatorConfig {
  return readConfig(tlsRotatorSettings, env);
}
