import { readFileSync } from 'node:fs';
import { type BusUser, ColonnadeError, inboxPrefix } from '@colonnade/contracts';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import type { BusLogger } from './logger.ts';

export type BusOptions = {
  /** One or several `nats://host:port`, separated by commas. */
  servers: string;
  user: BusUser;
  password: string;
  /** Shown in the server's connection list. */
  name: string;
  tls?: { caFile?: string; certFile?: string; keyFile?: string };
  logger: BusLogger;
};

/**
 * Opens one connection that reconnects for ever, with the user's own inbox prefix.
 * @throws ColonnadeError `bus_unavailable` when no server answers or the password is wrong
 */
export async function openConnection(options: BusOptions): Promise<NatsConnection> {
  const read = (path: string | undefined) => (path === undefined ? {} : readFileSync(path, 'utf8'));
  try {
    return await connect({
      servers: options.servers.split(',').map((s) => s.trim()),
      user: options.user,
      pass: options.password,
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
      ...(options.tls === undefined
        ? {}
        : {
            tls: {
              ...(options.tls.caFile === undefined ? {} : { ca: read(options.tls.caFile) as string }),
              ...(options.tls.certFile === undefined ? {} : { cert: read(options.tls.certFile) as string }),
              ...(options.tls.keyFile === undefined ? {} : { key: read(options.tls.keyFile) as string }),
            },
          }),
    });
  } catch (thrown) {
    throw new ColonnadeError(
      'bus_unavailable',
      `NATS does not accept user ${options.user} at ${options.servers}`,
      {
        cause: thrown,
      },
    );
  }
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
