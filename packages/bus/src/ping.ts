import { ColonnadeError } from '@colonnade/contracts';
import type { NatsConnection } from '@nats-io/transport-node';

const PING_LIMIT_MS = 1000;

/**
 * A round trip to the server, since a socket to one that hangs looks open for half a minute. At most one PING is under way:
 * who asks meanwhile shares its answer, and none waits longer than a second.
 */
export function createPing(connection: Pick<NatsConnection, 'rtt'>): () => Promise<void> {
  let underWay: Promise<number> | undefined;
  return async () => {
    underWay ??= connection.rtt().finally(() => {
      underWay = undefined;
    });
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(unavailable(`NATS does not answer within ${PING_LIMIT_MS} ms`)),
      PING_LIMIT_MS,
    );
    try {
      await Promise.race([underWay, late.promise]);
    } catch (thrown) {
      throw thrown instanceof ColonnadeError ? thrown : unavailable('the bus is not connected', thrown);
    } finally {
      clearTimeout(timer);
    }
  };
}

function unavailable(message: string, cause?: unknown): ColonnadeError {
  return new ColonnadeError('bus_unavailable', message, cause === undefined ? {} : { cause });
}
