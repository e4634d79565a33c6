export { type Child, type ChildOptions, type Exit, startChild } from './child.ts';
export { findNatsServer } from './find-nats.ts';
export { findRedisServer } from './find-redis.ts';
export type { FindOptions, FoundServer } from './find-server.ts';
export { type NatsOptions, type NatsServer, startNats } from './start-nats.ts';
export { type RedisOptions, type RedisServer, startRedis } from './start-redis.ts';
export { type RunningServer, superviseServer, waitReady } from './supervise.ts';
export { findOnPath, installOnce, type Report, runCommand, toolsCache } from './tools.ts';
