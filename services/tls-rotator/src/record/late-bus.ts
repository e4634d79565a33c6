import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Bus,
  type BusConfig,
  connectService,
  type Route,
  type ServedService,
  type ServiceDescription,
} from '@colonnade/bus';
import { ColonnadeError, startCall } from '@colonnade/contracts';
import type { Logger } from '@colonnade/service-kit';
import type { SpoolItem } from './spool.ts';

export type LateBus = AsyncDisposable & {
  /** @throws ColonnadeError `bus_unavailable`: not connected, or not stored */
  publish(item: SpoolItem): Promise<void>;
  /** Answers requests, from the moment there is a connection until disposed; called once. */
  serve(service: ServiceDescription, routes: readonly Route[]): AsyncDisposable;
  isConnected(): boolean;
};

const RETRY_MS = 1000;
const PUBLISH_BUDGET_MS = 5000;

/** A connection to NATS that may come later: nothing of a rotation waits for it. */
export function connectLate(config: BusConfig, logger: Logger): LateBus {
  const stopped = new AbortController();
  let bus: Bus | undefined;
  let served: ServedService | undefined;
  const routes = Promise.withResolvers<[ServiceDescription, readonly Route[]] | undefined>();
  const connecting = (async () => {
    for (let tries = 0; !stopped.signal.aborted && bus === undefined; tries += 1) {
      bus = await connectService('tls-rotator', config, logger).catch((thrown) => {
        if (tries === 0) logger.warn({ err: thrown }, 'NATS is away: records and events are kept');
        return undefined;
      });
      if (bus === undefined)
        await sleep(RETRY_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
    const wanted = await routes.promise;
    if (wanted !== undefined && !stopped.signal.aborted) served = await bus?.serve(...wanted);
  })().catch((thrown: unknown) => logger.error({ err: thrown }, 'requests are not answered'));
  return {
    isConnected: () => bus?.isConnected() === true,
    serve(service, wanted) {
      routes.resolve([service, wanted]);
      return {
        async [Symbol.asyncDispose]() {
          stopped.abort();
          await connecting;
          await served?.[Symbol.asyncDispose]();
        },
      };
    },
    async publish({ subject, msgId, payload }) {
      if (bus?.isConnected() !== true) throw new ColonnadeError('bus_unavailable', 'not connected to NATS');
      // It may have been stored by a try whose acknowledgement was lost.
      await bus.publishDurable(
        { subject, msgId, payload, allowDuplicate: true },
        startCall(PUBLISH_BUDGET_MS),
      );
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      routes.resolve(undefined);
      await connecting;
      await bus?.[Symbol.asyncDispose]();
    },
  };
}
