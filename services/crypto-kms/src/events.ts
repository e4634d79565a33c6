import type { ColonnadeError } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import { countOutcomes, type ItemResult } from './batch.ts';
import { PREPUBLISH_LEAST_S } from './config.ts';
import type { KeyVersion } from './keyring/keyring.ts';
import { USES_LIMIT } from './keyring/uses.ts';

/** Everything that happens here and that an operator may want to see: one function each, its log line and its metric. */
export type Events = ReturnType<typeof createEvents>;

export function createEvents(logger: Logger, metrics: Metrics) {
  const requests = metrics.counter('kms_requests_total', 'Requests answered, by endpoint and code.', [
    'endpoint',
    'code',
  ]);
  const durations = metrics.histogram('kms_request_seconds', 'Time to answer a request.', ['endpoint']);
  const items = metrics.counter('kms_items_total', 'Items of batches, by endpoint and code.', [
    'endpoint',
    'code',
  ]);
  const lost = metrics.counter('kms_audit_lost_total', 'Audit records given up at shutdown.', []);
  const unstorable = metrics.counter(
    'kms_audit_unstorable_total',
    'Audit records that cannot be stored, however often they are tried.',
    [],
  );
  const keyringFaults = metrics.counter(
    'kms_keyring_faults_total',
    'Turns in which the keyring could not be read or rotated.',
    [],
  );
  const keysUntold = metrics.counter(
    'kms_key_events_faults_total',
    'Turns in which the bus could not be told what became of a key.',
    [],
  );
  const encryptionsOf = metrics.gauge(
    'kms_key_encryptions',
    'Encryptions done with a key, at most, over all replicas; it should be followed by another well before 2^32.',
    ['kid'],
  );
  const warned = new Set<string>();
  const taskFaults = metrics.counter(
    'kms_task_states_faults_total',
    'Turns in which it could not be read which tasks live.',
    [],
  );
  const pending = metrics.gauge('kms_audit_pending', 'Audit records taken and not yet acknowledged.', []);
  return {
    handled({ endpoint, code, durationMs }: { endpoint: string; code: string; durationMs: number }) {
      requests.inc({ endpoint, code });
      durations.observe({ endpoint }, durationMs / 1000);
      if (code === 'ok') return;
      logger.warn({ endpoint, code, durationMs: Math.round(durationMs) }, 'request refused');
    },
    itemsAnswered(endpoint: string, results: readonly ItemResult<unknown>[]) {
      for (const [code, count] of countOutcomes(results)) {
        items.inc({ endpoint, code }, count);
        if (code !== 'ok') logger.warn({ endpoint, code, count, of: results.length }, 'items refused');
      }
    },
    keyLoaded: (kid: string) => logger.info({ kid }, 'key encryption key loaded'),
    keyRotated: ({ kid, active_from_ms }: KeyVersion) =>
      logger.info({ kid, activeFrom: new Date(active_from_ms).toISOString() }, 'key rotated'),
    minVersionSet: ({ name, version }: { name: string; version: number }) =>
      logger.info({ key: name, version }, 'least version of a key set: older ones open nothing'),
    keyDestroyed: ({ kid, erase_after_ms }: KeyVersion) =>
      logger.warn({ kid, eraseAfter: new Date(erase_after_ms ?? 0).toISOString() }, 'key destroyed'),
    keyUndestroyed: ({ kid }: KeyVersion) => logger.info({ kid }, 'key taken back'),
    keyErased: ({ kid }: KeyVersion) => logger.warn({ kid }, 'key erased'),
    keysUsed(versions: readonly KeyVersion[], warnAt: number) {
      for (const { kid, encryptions, state } of versions) {
        encryptionsOf.set({ kid }, encryptions);
        if (state !== 'active' || encryptions < warnAt || warned.has(kid)) continue;
        warned.add(kid);
        logger.warn({ kid, encryptions, limit: USES_LIMIT }, 'the key has encrypted often: rotate it');
      }
    },
    keysRead: (versions: readonly KeyVersion[]) =>
      logger.info({ versions: versions.map(({ kid, state }) => `${kid} ${state}`) }, 'keyring read'),
    keyringFault: (error: Error) => {
      keyringFaults.inc();
      logger.error({ err: error }, 'the keyring cannot be read or rotated');
    },
    keyTold: (type: string, subject: string) => logger.debug({ type, subject }, 'the bus was told of a key'),
    keyUntold(key: string, thrown: unknown, isFirst: boolean) {
      keysUntold.inc();
      if (isFirst)
        logger.warn({ key, err: thrown }, 'the bus cannot be told what became of a key: tried again');
    },
    taskStatesFault(thrown: unknown) {
      taskFaults.inc();
      logger.warn({ err: thrown }, 'which tasks live cannot be read');
    },
    prepublishedTooShort: (seconds: number) =>
      logger.warn(
        { seconds, least: PREPUBLISH_LEAST_S },
        'KMS_KEY_PREPUBLISH_S is short: a new key may sign before everybody knows it',
      ),
    keyMissing: () => logger.warn({}, 'no key encryption key is configured: nothing can be sealed or opened'),
    identityLoaded: (kid: string) => logger.info({ kid }, 'identity key loaded'),
    bootstrapRead({ tokenId, registered }: { tokenId: string; registered: boolean }) {
      if (registered) logger.info({ tokenId }, 'bootstrap API token registered');
      else logger.warn({ tokenId }, 'bootstrap API token was deleted and stays so');
    },
    recordsLost(count: number) {
      lost.inc(count);
      logger.error({ count }, 'audit records given up at shutdown');
    },
    recordUnstorable(error: ColonnadeError) {
      unstorable.inc();
      logger.error({ code: error.code, err: error }, 'audit record cannot be stored');
    },
    recordsPending: (count: number) => pending.set(count),
  };
}
