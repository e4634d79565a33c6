import type { BusUser } from '@colonnade/contracts';
import { type Bus, connectBus } from './bus.ts';
import type { BusLogger } from './logger.ts';

/** As `busSettings` of `packages/service-kit` reads it. */
export type BusConfig = {
  natsUrl: string;
  natsNkeySeed: { reveal(): string };
  natsCaFile: string | undefined;
};

/**
 * Connects a service under its own NATS user.
 * @throws ColonnadeError `bus_unavailable`
 */
export function connectService(user: BusUser, config: BusConfig, logger: BusLogger): Promise<Bus> {
  return connectBus({
    servers: config.natsUrl,
    user,
    nkeySeed: config.natsNkeySeed.reveal(),
    name: user,
    caFile: config.natsCaFile,
    logger,
  });
}
