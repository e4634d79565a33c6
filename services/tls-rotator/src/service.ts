import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { openAuditor } from '@colonnade/audit';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type Metrics,
  type Running,
} from '@colonnade/service-kit';
import type { TlsRotatorConfig } from './config.ts';
import { type Controller, startController } from './controller.ts';
import { createEvents, type Events } from './events.ts';
import { createKubeClient, type KubeClient } from './kube/client.ts';
import { type Leadership, startLease } from './kube/lease.ts';
import { createNodeRoller } from './nodes/create-roller.ts';
import { connectLate, type LateBus } from './record/late-bus.ts';
import { createRecorder, type Recorder } from './record/recorder.ts';
import { openSpool } from './record/spool.ts';
import { createRoutes } from './routes.ts';
import { createSecretSync } from './secrets/sync.ts';
import type { Allowed } from './spec.ts';

export type TlsRotator = Running & { url: string };
export type TlsRotatorDeps = { logger: Logger };

const LEASE_NAME = 'tls-rotator';
const SERVICE = {
  name: 'tls-rotator',
  version: '0.1.0',
  description: 'Rotates the TLS material of a Kubernetes ingress.',
  // A plan looks at every node by SSH.
  maxInFlight: 8,
} as const;

/**
 * Starts the rotator. NATS may be away, and the API server too: it waits for the one and keeps what is for the other.
 * @throws ColonnadeError `misconfigured`
 */
export async function createTlsRotator(
  config: TlsRotatorConfig,
  { logger }: TlsRotatorDeps,
): Promise<TlsRotator> {
  const metrics = createMetrics('tls-rotator');
  const events = createEvents(logger, metrics);
  await using started = new AsyncDisposableStack();
  const health = createHealth();
  const { opsHost: host, opsPort: port } = config;
  const ops = started.use(await createOpsServer({ host, port, health, metrics, logger }));
  const client = started.use(createKubeClient(config.kubeconfigFile));
  const bus = started.use(connectLate(config, logger));
  const recorder = await startRecorder(config, { bus, client, events, logger, metrics, started });
  const allowed: Allowed = {
    sourceNamespaces: config.sourceNamespaces,
    pathPrefixes: config.pathPrefixes,
    nodeAddresses: config.nodeAddresses ?? { check: () => false },
  };
  let controller: Controller | undefined;
  const lease = started.use(startLeadership(config, client, events, () => controller?.kick()));
  const isLeader = () => lease.isLeader();
  const { namespace, nodePollMs, resyncMs } = config;
  const roller = started.use(
    createNodeRoller({
      client,
      allowed,
      events,
      recorder,
      isLeader,
      namespace,
      pollMs: nodePollMs,
      resyncMs,
    }),
  );
  const sync = createSecretSync(client, events, config.writers);
  controller = started.use(
    startController({
      ...{ client, allowed, events, recorder, roller, isLeader, resyncMs, sync },
      silenceMs: config.watchSilenceMs,
    }),
  );
  const { watches } = controller;
  const routes = createRoutes({ client, watches, allowed, sync, roller, leader: () => lease.holder() });
  started.use(bus.serve({ ...SERVICE, onHandled: events.handled }, routes));
  health.addCheck('watches', () => {
    if (!controller.isSynced()) throw new Error('the API server has not been listed yet');
  });
  started.defer(() => health.setDraining());
  const running = started.move();
  return { url: ops.url, announce: { url: ops.url }, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

type Parts = {
  bus: LateBus;
  client: KubeClient;
  events: Events;
  logger: Logger;
  metrics: Metrics;
  started: AsyncDisposableStack;
};

async function startRecorder(
  config: TlsRotatorConfig,
  { bus, client, events, logger, metrics, started }: Parts,
): Promise<Recorder> {
  const spool = started.use(await openSpool(config.spoolDir, (item) => bus.publish(item), events));
  // A record is stored once it is in the spool: NATS may come later.
  const kept = {
    publishDurable: async (item: Parameters<typeof bus.publish>[0]) => {
      await spool.put([item]);
      return { seq: 0, duplicate: false };
    },
    isConnected: () => true,
  };
  const { auditor } = started.use(
    openAuditor({ bus: kept, service: 'tls-rotator', config, logger, metrics }),
  );
  const username = `system:serviceaccount:${config.namespace}:tls-rotator`;
  return createRecorder({ client, spool, auditor, username, failed: events.tellingFailed });
}

function startLeadership(
  config: TlsRotatorConfig,
  client: KubeClient,
  events: Events,
  onGained: () => void,
): Leadership {
  return startLease(client, {
    namespace: config.namespace,
    name: LEASE_NAME,
    identity: `${config.identity ?? hostname()}_${randomUUID()}`,
    durationMs: config.leaseMs,
    onGained: () => {
      events.leaderIs(true);
      onGained();
    },
    onLost: () => {
      events.leaderIs(false);
      events.notLeading();
    },
    onError: events.leaseFailed,
  });
}
