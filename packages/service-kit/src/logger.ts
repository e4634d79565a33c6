import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that never reach a log, wherever they stand in the first three levels. */
const SECRET_FIELDS = [
  'value',
  'token',
  'password',
  'authorization',
  'secret',
  'kek',
  'dek',
  'grant',
  'cookie',
  'pillar',
];

/**
 * JSON lines. Messages are constant, data stands in fields; redaction is configured here, once.
 * Errors are reduced to code, message and stack: an error of a library may carry the request it failed on.
 */
export function createLogger(options: {
  service: string;
  level: LogLevel;
  destination?: DestinationStream;
}): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths, censor: '[redacted]' },
      serializers: { err: describeError },
    },
    options.destination ?? pino.destination({ dest: 1, sync: false }),
  );
}

function describeError(thrown: unknown): object {
  if (!(thrown instanceof Error)) return { message: 'not an error', type: typeof thrown };
  const code = 'code' in thrown ? String(thrown.code) : undefined;
  const cause = thrown.cause === undefined ? undefined : describeError(thrown.cause);
  return { type: thrown.name, code, message: thrown.message, stack: thrown.stack, cause };
}
