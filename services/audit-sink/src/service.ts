import { type Bus, connectBus } from '@colonnade/bus';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type Running,
} from '@colonnade/service-kit';
import type { Backend } from './backends/backend.ts';
import { createFileBackend } from './backends/file.ts';
import { createStdoutBackend } from './backends/stdout.ts';
import { startBackends } from './backends/union.ts';
import type { AuditSinkConfig } from './config.ts';
import { createEvents, type Events } from './events.ts';

export type AuditSink = Running & { url: string };

const MEGABYTE = 1024 * 1024;

/**
 * Starts the sink: each backend reads the audit stream through its own durable consumer.
 * @throws ColonnadeError `misconfigured`, `bus_unavailable`
 */
export async function createAuditSink(config: AuditSinkConfig, deps: { logger: Logger }): Promise<AuditSink> {
  const { logger } = deps;
  const metrics = createMetrics('audit-sink');
  const events = createEvents(logger, metrics);
  await using started = new AsyncDisposableStack();
  const bus = started.use(await openBus(config, logger));
  const health = createHealth();
  const ops = started.use(
    await createOpsServer({ host: config.opsHost, port: config.opsPort, health, metrics, logger }),
  );
  const file = logBackend(config, bus, events);
  const backends = [file];
  const union = startBackends(backends, bus, events);
  started.use(union);
  started.use(onHangup(() => file.reopen()));
  health.addCheck('nats', () => {
    if (!bus.isConnected()) throw new Error('the bus is not connected');
  });
  health.addCheck('file', () => union.check('file'));
  started.defer(() => health.setDraining());
  const running = started.move();
  return {
    url: ops.url,
    announce: { url: ops.url },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function openBus(config: AuditSinkConfig, logger: Logger): Promise<Bus> {
  return connectBus({
    servers: config.natsUrl,
    user: 'audit-sink',
    password: config.natsPassword.reveal(),
    name: 'audit-sink',
    logger,
    ...(config.natsCaFile === undefined ? {} : { tls: { caFile: config.natsCaFile } }),
  });
}

function logBackend(
  config: AuditSinkConfig,
  bus: Bus,
  events: Events,
): Backend & { reopen(): Promise<void> } {
  const deps = { bus, events };
  if (config.logPath === '-') return createStdoutBackend({ format: config.logFormat }, deps);
  return createFileBackend(
    {
      path: config.logPath,
      format: config.logFormat,
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

/** SIGHUP, as log rotation from outside sends it. */
function onHangup(act: () => Promise<void>): Disposable {
  const listener = () => void act();
  process.on('SIGHUP', listener);
  return { [Symbol.dispose]: () => process.removeListener('SIGHUP', listener) };
}
