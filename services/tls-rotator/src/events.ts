import type { ColonnadeError } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import type { ReflectorWatcher } from './kube/reflector.ts';
import type { SpoolWatcher } from './record/spool.ts';
import type { SyncWatcher } from './secrets/sync.ts';
import { COUNTED } from './secrets/tally.ts';
import { CONDITIONS, type Status } from './status.ts';
import { EXPIRY_WARNING_MS } from './verdicts.ts';

/** Everything that happens here and that an operator may want to see: one function each, its log line and its metric. */
export type Events = ReturnType<typeof createEvents>;

export function createEvents(logger: Logger, metrics: Metrics) {
  return {
    ...watchEvents(logger, metrics),
    ...secretEvents(logger, metrics),
    ...nodeEvents(logger, metrics),
    ...recordEvents(logger, metrics),
    ...passEvents(logger, metrics),
    ...busEvents(metrics),
  };
}

function watchEvents(
  logger: Logger,
  metrics: Metrics,
): ReflectorWatcher & { leaderIs(is: boolean): void; leaseFailed(error: ColonnadeError): void } {
  const relists = metrics.counter('tls_relists_total', 'Lists of Kubernetes objects.', []);
  const broken = metrics.counter('tls_watches_broken_total', 'Watches that failed or fell silent.', ['why']);
  const leader = metrics.gauge('tls_leader', 'Whether this replica leads.', []);
  return {
    relisted: () => relists.inc(),
    watchSilent(path) {
      broken.inc({ why: 'silent' });
      logger.warn({ path }, 'watch fell silent');
    },
    watchFailed(path, error) {
      broken.inc({ why: error.code });
      logger.warn({ path, code: error.code, err: error }, 'watch failed');
    },
    leaderIs(is) {
      leader.set(is ? 1 : 0);
      logger.info({ leader: is }, 'leadership');
    },
    leaseFailed: (error) => logger.warn({ code: error.code, err: error }, 'lease not renewed'),
  };
}

function secretEvents(logger: Logger, metrics: Metrics): SyncWatcher {
  const writes = metrics.counter('tls_secret_writes_total', 'Secrets written or not, by outcome.', [
    'outcome',
  ]);
  return {
    // Seed 004: at v=3.
    targetMissing: (facts) => logger.debug(facts, 'target missing'),
    targetWritten(facts) {
      writes.inc({ outcome: facts.outcome });
      logger.info(facts, 'target written');
    },
    targetFailed(facts) {
      writes.inc({ outcome: 'failed' });
      logger.warn(facts, 'target failed');
    },
    targetContested(facts) {
      writes.inc({ outcome: 'contested' });
      logger.warn(facts, 'target contested');
    },
  };
}

function nodeEvents(logger: Logger, metrics: Metrics) {
  const steps = metrics.counter(
    'tls_node_steps_total',
    'Steps on control-plane nodes, by step and outcome.',
    ['step', 'outcome'],
  );
  return {
    nodeStep(facts: { node: string; step: string; ms: number }) {
      steps.inc({ step: facts.step, outcome: 'ok' });
      logger.info(facts, 'node step');
    },
    nodeStepFailed(facts: { node: string; step: string; error: ColonnadeError }) {
      const { node, step, error } = facts;
      steps.inc({ step, outcome: error.code });
      logger.warn({ node, step, code: error.code, err: error }, 'node step failed');
    },
  };
}

function recordEvents(
  logger: Logger,
  metrics: Metrics,
): SpoolWatcher & { tellingFailed(what: string, error: unknown): void } {
  const waiting = metrics.gauge(
    'tls_spool_pending',
    'Audit records and events that NATS has not taken yet.',
    [],
  );
  const gone = metrics.counter('tls_spool_lost_total', 'Audit records and events given up.', []);
  let away = false;
  return {
    pending(count) {
      waiting.set(count);
      if (count === 0) away = false;
    },
    lost(count, error) {
      gone.inc(count);
      logger.error({ count, err: error }, 'spool cannot keep a record');
    },
    publishFailed(error) {
      if (!away) logger.warn({ code: error.code, err: error }, 'records wait for NATS');
      away = true;
    },
    tellingFailed: (what, error) => logger.warn({ what, err: error }, 'not told'),
  };
}

function busEvents(metrics: Metrics) {
  const requests = metrics.counter('tls_requests_total', 'Requests over the bus, by endpoint and outcome.', [
    'endpoint',
    'code',
  ]);
  return {
    handled: ({ endpoint, code }: { endpoint: string; code: string }) => requests.inc({ endpoint, code }),
  };
}

function passEvents(logger: Logger, metrics: Metrics) {
  const passes = metrics.counter('tls_passes_total', 'Passes over an IngressTLS, by outcome.', ['outcome']);
  const seconds = metrics.histogram('tls_pass_seconds', 'Time of a pass.', []);
  const targets = metrics.gauge('tls_targets', 'Secrets of an IngressTLS after its last pass.', [
    'ingresstls',
    'state',
  ]);
  const expiry = metrics.gauge(
    'tls_certificate_expiry_seconds',
    'When the first certificate of the source expires, seconds since 1970.',
    ['ingresstls'],
  );
  const condition = metrics.gauge('tls_condition', '1: the condition is True.', ['ingresstls', 'type']);
  return {
    passTimed: (ms: number) => seconds.observe(ms / 1000),
    passEnded: () => passes.inc({ outcome: 'ok' }),
    statusIs({ name, status }: { name: string; status: Status }) {
      for (const [state, count] of Object.entries(status.targets ?? {}))
        targets.set({ ingresstls: name, state }, count);
      for (const { type, status: is } of status.conditions ?? [])
        condition.set({ ingresstls: name, type }, is === 'True' ? 1 : 0);
      if (status.source === undefined) return;
      const notAfterMs = Date.parse(status.source.notAfter);
      expiry.set({ ingresstls: name }, notAfterMs / 1000);
      if (notAfterMs - Date.now() < EXPIRY_WARNING_MS)
        logger.warn({ ingresstls: name, notAfter: status.source.notAfter }, 'source expires soon');
    },
    deletionWaits: (facts: { name: string; message: string }) =>
      logger.warn(facts, 'deletion waits for a node that was begun'),
    passFailed({ name, error }: { name: string; error: ColonnadeError }) {
      passes.inc({ outcome: error.code });
      logger.warn({ ingresstls: name, code: error.code, err: error }, 'pass failed');
    },
    /** Whoever leads now knows better: nobody is to be alarmed by what was true here once. */
    notLeading() {
      for (const gauge of [targets, expiry, condition]) gauge.reset();
    },
    gone(name: string) {
      expiry.remove({ ingresstls: name });
      for (const state of COUNTED) targets.remove({ ingresstls: name, state });
      for (const type of CONDITIONS) condition.remove({ ingresstls: name, type });
      logger.info({ ingresstls: name }, 'ingresstls gone');
    },
  };
}
