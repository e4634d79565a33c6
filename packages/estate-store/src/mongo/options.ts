import { ColonnadeError } from '@colonnade/contracts';
import type { CommandStartedEvent, MongoClientOptions } from 'mongodb';

export type MongoOptions = {
  /** `mongodb://host:port,…` or `mongodb+srv://…`, of a replica set. It carries no password. */
  url: string;
  database: string;
  user?: string | undefined;
  password?: string | undefined;
  /** Where the user is known; `admin` unless given. */
  authDatabase?: string | undefined;
  /** TLS is spoken when this is given, or when the url asks for it with `tls=true`. The files may be replaced while it runs. */
  tls?:
    | {
        /** CA that signed the servers' certificates; the system's when absent. */
        caFile?: string | undefined;
        /** Our certificate with its key, PEM, where the servers ask for one. */
        certificateKeyFile?: string | undefined;
      }
    | undefined;
  /** Connections at most. */
  poolSize?: number | undefined;
  /** How long to look for a primary before an operation is `unavailable`, milliseconds. */
  selectTimeoutMs?: number | undefined;
  /** How long one operation may take on the server, milliseconds. */
  operationTimeoutMs?: number | undefined;
  /** Called with every command before it is sent; for tests and traces. */
  onCommand?: ((event: CommandStartedEvent) => void) | undefined;
};

export const OPERATION_TIMEOUT_MS = 5000;
const SELECT_TIMEOUT_MS = 3000;
const CONNECT_TIMEOUT_MS = 3000;
const POOL_SIZE = 50;

/** Durable on a majority, and never older than that. Nothing in a url may weaken it. */
export const WRITE_CONCERN = { w: 'majority', journal: true, wtimeoutMS: OPERATION_TIMEOUT_MS } as const;

const URL_OPTIONS: ReadonlySet<string> = new Set([
  ...['replicaset', 'authsource', 'authmechanism', 'tls', 'directconnection', 'compressors'],
  ...['srvmaxhosts', 'srvservicename', 'appname'],
]);

/** Without the TLS files. @throws ColonnadeError `misconfigured`; the url is not repeated */
export function clientOptions(options: MongoOptions): MongoClientOptions {
  checkUrl(options.url);
  if (!/^[A-Za-z0-9_-]{1,63}$/u.test(options.database)) {
    throw new ColonnadeError('misconfigured', 'a database name has 1–63 of A–Z a–z 0–9 _ -');
  }
  const operationMs = options.operationTimeoutMs ?? OPERATION_TIMEOUT_MS;
  return {
    appName: 'colonnade',
    maxPoolSize: options.poolSize ?? POOL_SIZE,
    serverSelectionTimeoutMS: options.selectTimeoutMs ?? SELECT_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    waitQueueTimeoutMS: operationMs,
    // A server that is stopped answers nothing; the server itself ends what takes longer than an operation may.
    socketTimeoutMS: 2 * operationMs,
    readPreference: 'primary',
    readConcern: { level: 'majority' },
    writeConcern: WRITE_CONCERN,
    retryReads: true,
    retryWrites: true,
    monitorCommands: options.onCommand !== undefined,
    ...credentials(options),
    ...(options.tls === undefined ? {} : { tls: true }),
  };
}

function credentials({ user, password, authDatabase }: MongoOptions): MongoClientOptions {
  if (user === undefined && password === undefined) return {};
  return {
    auth: {
      ...(user === undefined ? {} : { username: user }),
      ...(password === undefined ? {} : { password }),
    },
    authSource: authDatabase ?? 'admin',
  };
}

function checkUrl(url: string): void {
  const match = /^mongodb(?:\+srv)?:\/\/(?:([^@/]*)@)?[^/?@]+(?:\/[^?]*)?(?:\?(.*))?$/u.exec(url);
  if (match === null)
    throw new ColonnadeError('misconfigured', 'not a url of MongoDB: mongodb://host:port/…');
  if (match[1] !== undefined) {
    throw new ColonnadeError(
      'misconfigured',
      'the url of MongoDB holds a user: give user and password apart',
    );
  }
  for (const key of new URLSearchParams(match[2] ?? '').keys()) {
    if (URL_OPTIONS.has(key.toLowerCase())) continue;
    const name = key.replace(/[^A-Za-z]/gu, '?').slice(0, 40);
    throw new ColonnadeError('misconfigured', `the url of MongoDB may not set "${name}"`);
  }
}
