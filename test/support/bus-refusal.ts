import { errors, type NatsConnection } from '@nats-io/transport-node';

/** Tries one operation and says whether the server refused it for want of a right. */
export async function isRefused(
  connection: NatsConnection,
  attempt: (connection: NatsConnection) => void,
): Promise<boolean> {
  const statuses = connection.status();
  let violation = false;
  const watching = (async () => {
    for await (const status of statuses) {
      if (status.type === 'error' && status.error instanceof errors.PermissionViolationError) {
        violation = true;
        return;
      }
      if (status.type === 'close') return;
    }
  })();
  attempt(connection);
  await connection.flush();
  await connection.flush();
  (statuses as AsyncIterable<unknown> & { stop?: () => void }).stop?.();
  void watching;
  return violation;
}
