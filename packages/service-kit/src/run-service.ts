import { ColonnadeError } from '@colonnade/contracts';
import { pino } from 'pino';
import { createLogger, LOG_LEVELS, type Logger, type LogLevel } from './logger.ts';

const FORCE_EXIT_MS = 10_000;

/** A running service: `url` and the like go into the ready line. */
export type Running = AsyncDisposable & { announce?: Readonly<Record<string, unknown>> };

/**
 * The life of a process: start, one `ready` line, wait for SIGTERM or SIGINT, dispose, leave. Exit codes: 0 stopped as
 * asked, 78 misconfigured (EX_CONFIG), 1 anything else. Ten seconds after a signal it leaves in any case.
 */
export async function runService(options: {
  name: string;
  /** Where the log goes: 1, standard output, unless said. */
  logFd?: (env: NodeJS.ProcessEnv) => 1 | 2;
  start: (env: NodeJS.ProcessEnv, logger: Logger) => Promise<Running>;
}): Promise<void> {
  const logger = createLogger({
    service: options.name,
    level: levelOf(process.env.LOG_LEVEL),
    destination: pino.destination({ dest: options.logFd?.(process.env) ?? 1, sync: false }),
  });
  process.on('uncaughtException', (err) => leave(logger, err, 'uncaught exception'));
  process.on('unhandledRejection', (err) => leave(logger, err, 'unhandled rejection'));
  try {
    const asked = stopSignal();
    const running = await options.start(process.env, logger);
    logger.info({ ...running.announce, pid: process.pid, node: process.version }, 'ready');
    const signal = await asked;
    logger.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), FORCE_EXIT_MS).unref();
    await running[Symbol.asyncDispose]();
    logger.info({}, 'stopped');
    logger.flush();
    process.exitCode = 0;
    setTimeout(() => process.exit(0), 500).unref();
  } catch (thrown) {
    leave(logger, thrown, 'cannot start');
  }
}

/** Keeps the process alive until then, also while none of its sockets is open. */
function stopSignal(): Promise<string> {
  const alive = setInterval(() => {}, 2 ** 30);
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        clearInterval(alive);
        resolve(signal);
      });
    }
  });
}

function leave(logger: Logger, thrown: unknown, message: string): never {
  const misconfigured = thrown instanceof ColonnadeError && thrown.code === 'misconfigured';
  logger.fatal({ err: thrown }, message);
  logger.flush();
  if (misconfigured) process.stderr.write(`${thrown.message}\n`);
  process.exit(misconfigured ? 78 : 1);
}

function levelOf(text: string | undefined): LogLevel {
  return LOG_LEVELS.find((level) => level === text) ?? 'info';
}
