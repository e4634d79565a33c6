export { type Bus, connectBus } from './bus.ts';
export type { BusOptions } from './connect.ts';
export { type BusConfig, connectService } from './connect-service.ts';
export { type ConsumeOptions, type ConsumerState, DONE, type Verdict } from './consume.ts';
export type { BucketEntry } from './entries.ts';
export {
  type ConsumerLag,
  connectInspector,
  type Inspector,
  type ServiceInstance,
  type StoredDeadLetter,
  type StreamFill,
} from './inspect.ts';
export type { BusLogger } from './logger.ts';
export {
  type NatsConfigOptions,
  publicKeysText,
  renderNatsConfig,
  renderProductionNatsConfig,
} from './nats-config.ts';
export { createUserNkey, publicKeysOf, readUserNkey, type UserNkey } from './nkey.ts';
export type { DurableMessage } from './publish.ts';
export type { Delivery, PullOptions } from './pull.ts';
export { type Route, route, type ServedService, type ServiceDescription } from './serve.ts';
export type { StreamSizes } from './streams.ts';
