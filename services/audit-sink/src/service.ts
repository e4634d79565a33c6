import { createAuditWatch, openPolicySource } from '@colonnade/audit';
import { type EventFilter, filterBy } from '@colonnade/audit-log';
import { createReloadingPoster } from '@colonnade/audit-webhook';
import { type Bus, connectService } from '@colonnade/bus';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type Running,
} from '@colonnade/service-kit';
import { createAlerts, raisingAlerts } from './alerts.ts';
import { createFileBackend } from './backends/file.ts';
import { createStdoutBackend } from './backends/stdout.ts';
import { startBackends } from './backends/union.ts';
import { createWebhookBackend, type WebhookBackend } from './backends/webhook.ts';
import type { AuditSinkConfig } from './config.ts';
import { createEvents, type Events } from './events.ts';
import { hashToken } from './ingest/authenticate.ts';
import { type IngestServer, startIngest } from './ingest/server.ts';
import { watchBacklog } from './retention.ts';

export type AuditSink = Running & { url: string; ingestUrl: string | undefined };

export type AuditSinkDeps = { logger: Logger };

const SERVICE = {
  name: 'audit-sink',
  version: '0.1.0',
  description: 'Writes the audit stream into a log, and sends it to a webhook.',
} as const;
const MEGABYTE = 1024 * 1024;

/**
 * Starts the sink: each backend reads the audit stream through its own durable consumer.
 * @throws ColonnadeError `misconfigured`, `bus_unavailable`
 */
export async function createAuditSink(config: AuditSinkConfig, deps: AuditSinkDeps): Promise<AuditSink> {
  const { logger } = deps;
  const metrics = createMetrics('audit-sink');
  const told = createEvents(logger, metrics);
  await using started = new AsyncDisposableStack();
  const bus = started.use(await connectService('audit-sink', config, logger));
  const events = raisingAlerts(told, started.use(createAlerts(bus, told)));
  // It serves nothing there, but says that it is here.
  started.use(await bus.serve(SERVICE, []));
  const health = createHealth();
  const { opsHost: host, opsPort: port } = config;
  const ops = started.use(await createOpsServer({ host, port, health, metrics, logger }));

  const watch = createAuditWatch(logger, metrics);
  const filterOf = (policyFile: string | undefined): EventFilter | undefined => {
    if (policyFile === undefined) return undefined;
    return filterBy(
      started.use(openPolicySource({ file: policyFile, strict: config.auditStrictPolicy, watch })),
    );
  };
  const file = logBackend(config, bus, events, filterOf(config.logPolicyFile));
  const webhook = webhookBackend(config, bus, events, filterOf(config.webhookPolicyFile));
  const backends = webhook === undefined ? [file] : [file, webhook];
  events.beginsAtZero(backends.map(({ name }) => name));
  const union = started.use(startBackends(backends, bus, events));
  const backlog = started.use(
    watchBacklog(
      bus,
      { file, webhook },
      { maxEvents: config.webhookMaxBacklog, maxShare: config.webhookMaxStreamPercent / 100 },
      events,
    ),
  );
  const ingest = await ingestServer(config, bus, events);
  if (ingest !== undefined) started.use(ingest);
  started.use(
    onHangup(() => {
      void file.reopen();
      ingest?.reload();
    }),
  );
  health.addCheck('nats', () => bus.ping());
  for (const name of union.names) health.addCheck(name, () => union.check(name));
  health.addCheck('stream', () => backlog.check());
  started.defer(() => health.setDraining());
  const running = started.move();
  const ingestUrl = ingest?.url;
  return {
    url: ops.url,
    ingestUrl,
    announce: { url: ops.url, ...(ingestUrl === undefined ? {} : { ingestUrl }) },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function logBackend(config: AuditSinkConfig, bus: Bus, events: Events, filter: EventFilter | undefined) {
  const deps = { bus, events };
  if (config.logPath === '-') return createStdoutBackend({ format: config.logFormat, filter }, deps);
  return createFileBackend(
    {
      path: config.logPath,
      format: config.logFormat,
      filter,
      maxBytes: config.logMaxSizeMb * MEGABYTE,
      keep: {
        maxBackups: config.logMaxBackups,
        maxAgeDays: config.logMaxAgeDays,
        compress: config.logCompress,
      },
      fsync: config.logFsync,
      acceptGapTo: config.logAcceptGapTo,
      anchorMs: config.anchorMs,
    },
    deps,
  );
}

function webhookBackend(
  config: AuditSinkConfig,
  bus: Bus,
  events: Events,
  filter: EventFilter | undefined,
): WebhookBackend | undefined {
  if (config.webhookConfigFile === undefined) return undefined;
  return createWebhookBackend(
    {
      poster: createReloadingPoster(config.webhookConfigFile, events.kubeconfigBad),
      batchMaxWaitMs: config.webhookBatchMaxWaitMs,
      throttleQps: config.webhookThrottleQps,
      throttleBurst: config.webhookThrottleBurst,
      initialBackoffMs: config.webhookInitialBackoffMs,
      limits: {
        truncate: config.webhookTruncate,
        maxEventBytes: config.webhookMaxEventBytes,
        maxBatchEvents: config.webhookBatchMaxSize,
        maxBatchBytes: config.webhookMaxBatchBytes,
      },
      filter,
    },
    { bus, events },
  );
}

async function ingestServer(
  config: AuditSinkConfig,
  bus: Bus,
  events: Events,
): Promise<IngestServer | undefined> {
  const { ingestPort, ingestCertFile, ingestKeyFile, ingestClientCaFile, ingestToken } = config;
  if (ingestPort === undefined || ingestCertFile === undefined || ingestKeyFile === undefined)
    return undefined;
  return startIngest(
    {
      host: config.ingestHost,
      port: ingestPort,
      certFile: ingestCertFile,
      keyFile: ingestKeyFile,
      clientCaFile: ingestClientCaFile,
      credentials: {
        tokenHash: ingestToken === undefined ? undefined : hashToken(ingestToken.reveal()),
        clientCertificates: ingestClientCaFile !== undefined,
        clientNames: config.ingestClientNames ?? [],
      },
      maxBodyBytes: config.ingestMaxBytes,
    },
    { bus, events },
  );
}

/** SIGHUP, as log rotation from outside sends it. */
function onHangup(act: () => void): Disposable {
  process.on('SIGHUP', act);
  return { [Symbol.dispose]: () => process.removeListener('SIGHUP', act) };
}
