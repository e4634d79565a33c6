import { randomBytes } from 'node:crypto';
import {
  type Bus,
  connectBus,
  createUserNkey,
  publicKeysOf,
  renderNatsConfig,
  type UserNkey,
} from '@colonnade/bus';
import { BUS_USERS, type BusUser, inboxPrefix } from '@colonnade/contracts';
import type { NatsServer } from '@colonnade/embedded/servers';
import { connect, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node';

import { natsForTests } from './servers.ts';

/** For tests of services, which do not know the client. */
export { headers, type NatsConnection } from '@nats-io/transport-node';

const silent = { info: () => {}, warn: () => {}, error: () => {} };

export type RealBus = AsyncDisposable & {
  nats: NatsServer;
  /** As a service connects. */
  as(user: BusUser): Promise<Bus>;
  /** As someone who stole a user's nkey connects: the plain client, nothing of ours in between. */
  raw(user: BusUser, options?: { inboxPrefix?: string }): Promise<NatsConnection>;
  /** A connection that may do everything, which no user of Colonnade may: to see what is in the streams. */
  witness(): Promise<NatsConnection>;
  nkeySeedOf(user: BusUser): string;
};

export type RealBusOptions = {
  /** Whether AUDIT is kept for a webhook too. */
  auditWebhook?: boolean;
  maxAuditBytes?: number;
  maxFileBytes?: number;
};

const MIB = 1024 * 1024;

/** A real nats-server with all users, their rights and the streams. */
export async function startRealBus(options: RealBusOptions = {}): Promise<RealBus> {
  const nkeys = Object.fromEntries(BUS_USERS.map((u) => [u, createUserNkey()])) as Record<BusUser, UserNkey>;
  const witnessPassword = randomBytes(12).toString('hex');
  const configText = configWithWitness(nkeys, witnessPassword, options.maxFileBytes);
  const nats = await natsForTests({ configText });
  const open: AsyncDisposable[] = [];
  const as = async (user: BusUser) => {
    const bus = await connectBus({
      servers: nats.url,
      user,
      nkeySeed: nkeys[user].seed,
      name: `test ${user}`,
      logger: silent,
    });
    open.push(bus);
    return bus;
  };
  const provisioner = await as('provisioner');
  await provisioner.provisionStreams({
    maxEventsBytes: 16 * MIB,
    maxAuditBytes: options.maxAuditBytes ?? 16 * MIB,
    auditWebhook: options.auditWebhook ?? false,
    replicas: 1,
  });
  return {
    nats,
    as,
    async raw(user, rawOptions = {}) {
      const connection = await connect({
        servers: nats.url,
        authenticator: nkeyAuthenticator(Buffer.from(nkeys[user].seed)),
        inboxPrefix: rawOptions.inboxPrefix ?? inboxPrefix(user),
      });
      open.push({ [Symbol.asyncDispose]: () => connection.close() });
      return connection;
    },
    async witness() {
      const connection = await connect({ servers: nats.url, user: 'witness', pass: witnessPassword });
      open.push({ [Symbol.asyncDispose]: () => connection.close() });
      return connection;
    },
    nkeySeedOf: (user) => nkeys[user].seed,
    async [Symbol.asyncDispose]() {
      for (const one of open.reverse()) await one[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    },
  };
}

function configWithWitness(
  nkeys: Record<BusUser, UserNkey>,
  witnessPassword: string,
  maxFileBytes = 80 * MIB,
): string {
  const text = renderNatsConfig({
    host: '127.0.0.1',
    port: -1,
    publicKeys: publicKeysOf(nkeys),
    syncAlways: false,
    maxFileBytes,
  });
  return text.replace('users: [', `users: [\n      { user: "witness", password: "${witnessPassword}" }`);
}
