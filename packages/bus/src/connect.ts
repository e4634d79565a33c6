import { type BusUser, ColonnadeError, inboxPrefix } from '@colonnade/contracts';
import { connect, errors, type NatsConnection } from '@nats-io/transport-node';
import type { BusLogger } from './logger.ts';
import { authenticateWith } from './nkey.ts';

export type BusOptions = {
  /** One or several `nats://host:port`, separated by commas. Off this host nothing is said without TLS. */
  servers: string;
  user: BusUser;
  /** Seed of the user's nkey, `SU…`. */
  nkeySeed: string;
  /** Shown in the server's connection list. */
  name: string;
  /** CA of the servers, PEM; read anew at each connection. Without it the authorities the system knows count. */
  caFile?: string | undefined;
  /** How long each server may take to let us in. */
  limitMs?: number;
  logger: BusLogger;
};

const LIMIT_MS = 20_000;

/**
 * Opens one connection that reconnects for ever, with the user's own inbox prefix.
 * @throws ColonnadeError `bus_unavailable` when no server answers, knows the key or can be trusted, `misconfigured` when the seed is none
 */
export async function openConnection(options: BusOptions): Promise<NatsConnection> {
  const servers = options.servers.split(',').map((s) => s.trim());
  const { limitMs: timeout = LIMIT_MS } = options;
  const authenticator = authenticateWith(options.nkeySeed);
  try {
    return await connect({
      servers,
      authenticator,
      timeout,
      name: options.name,
      inboxPrefix: inboxPrefix(options.user),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 250,
      pingInterval: 10_000,
      maxPingOut: 2,
      ignoreClusterUpdates: false,
      // Two stacks taken for each request, only to say where one that fails was asked; our errors have their own.
      noAsyncTraces: true,
      ...tlsOf(servers, options.caFile),
    });
  } catch (thrown) {
    throw new ColonnadeError('bus_unavailable', whyNot(thrown, options, timeout), { cause: thrown });
  }
}

/** A server that hangs, one that refuses, and none: whoever reads it does something else about each. */
function whyNot(thrown: unknown, { servers, user }: BusOptions, limitMs: number): string {
  if (thrown instanceof errors.TimeoutError) return `NATS at ${servers} does not answer within ${limitMs} ms`;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const isRefused =
    thrown instanceof errors.AuthorizationError || thrown instanceof errors.UserAuthenticationExpiredError;
  return isRefused
    ? `NATS at ${servers} does not accept user ${user}: ${message}`
    : `NATS at ${servers} cannot be reached: ${message}`;
}

/** A server that offers no TLS is refused then, so nobody between can take it away. */
function tlsOf(servers: readonly string[], caFile: string | undefined) {
  if (caFile !== undefined) return { tls: { caFile } };
  return servers.every(isOnThisHost) ? {} : { tls: {} };
}

function isOnThisHost(server: string): boolean {
  const url = URL.parse(server.includes('://') ? server : `nats://${server}`);
  return url?.protocol === 'nats:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/u.test(url.hostname);
}

/** Logs what becomes of a connection, and tells whether it stands now. */
export function watchConnection(connection: NatsConnection, logger: BusLogger): { isConnected(): boolean } {
  let connected = true;
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') connected = false;
      if (status.type === 'reconnect') connected = true;
      if (status.type === 'disconnect' || status.type === 'error')
        logger.warn(
          { status: status.type, error: 'error' in status ? String(status.error) : undefined },
          'bus status',
        );
      else if (status.type === 'reconnect') logger.info({ status: status.type }, 'bus status');
    }
    connected = false;
  })();
  return { isConnected: () => connected && !connection.isClosed() };
}
