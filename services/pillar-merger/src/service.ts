import { type Auditor, openAuditor } from '@colonnade/audit';
import { type Bus, connectService, route } from '@colonnade/bus';
import {
  estateRegisterMinion,
  kmsJwks,
  kmsOpenForMerger,
  mergerCompile,
  mergerExplain,
  mergerRefresh,
} from '@colonnade/contracts';
import { type EstateReader, openEstateReader } from '@colonnade/estate-store';
import { placeOf } from '@colonnade/estate-store/settings';
import { createKeySet } from '@colonnade/identity';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type Running,
} from '@colonnade/service-kit';
import type { MergeDeps } from './answer-merge.ts';
import { answerRewrapped } from './answer-rewrapped.ts';
import { type Bridge, createBridge } from './bridge/bridge.ts';
import { compilePillars } from './compile.ts';
import type { MergerConfig } from './config.ts';
import { createEstateCache, type EstateCache } from './estate-cache.ts';
import { createEvents, type Events } from './events.ts';
import { explainMerge } from './explain.ts';
import { startMasterWatch } from './master-watch.ts';
import { beginMergeRecord } from './merge-record.ts';
import { createRefusals } from './refusals.ts';
import { registerMinion } from './register-minion.ts';
import { createTurnstile } from './turnstile.ts';
import { createTokenVerifier } from './verify-token.ts';

export type Merger = Running & { url: string };

/** A read of the store that takes longer counts as no answer. */
const STORE_TIMEOUT_MS = 1500;

/**
 * Starts a merger. Redis, the store and the other services may come later: until then it is not ready.
 * @throws ColonnadeError `bus_unavailable`
 */
export async function createMerger(config: MergerConfig, deps: { logger: Logger }): Promise<Merger> {
  const { logger } = deps;
  const metrics = createMetrics('pillar-merger');
  const events = createEvents(logger, metrics);
  const health = createHealth();

  await using work = new AsyncDisposableStack();
  const bus = work.use(await connectService('pillar-merger', config, logger));
  const reader = work.use(await openEstateReader(placeOf(config)));
  const watch = startMasterWatch();
  const estate = createEstateCache({
    reader,
    mode: config.cache,
    maxBytes: config.cacheBytes,
    readTimeoutMs: STORE_TIMEOUT_MS,
    onMastersChanged: watch.changed,
    onRead: events.estateRead,
  });
  const { auditor } = work.use(openAuditor({ bus, service: 'pillar-merger', config, logger, metrics }));
  const bridge = work.use(openBridge(config, { bus, auditor, reader, estate, events, work }));
  work.use(watch.start(estate, bridge));
  work.use(await serveBus(config, bus, estate, bridge, events));
  health.addCheck('nats', () => bus.ping());
  health.addCheck('store', () => reader.ping());
  health.addCheck('bridge', () => bridge.check());
  const { opsHost: host, opsPort: port } = config;
  const ops = await createOpsServer({ host, port, health, metrics, logger });
  const running = work.move();
  return {
    url: ops.url,
    announce: { url: ops.url },
    async [Symbol.asyncDispose]() {
      // Health and metrics are there until the last request is answered.
      health.setDraining();
      await running.disposeAsync();
      await ops[Symbol.asyncDispose]();
    },
  };
}

type BridgeParts = {
  bus: Bus;
  auditor: Auditor;
  reader: EstateReader;
  estate: EstateCache;
  events: Events;
  work: AsyncDisposableStack;
};

function openBridge(config: MergerConfig, parts: BridgeParts): Bridge {
  const { auditor, reader, events, work } = parts;
  const refusals = work.use(createRefusals({ auditor, onFault: events.recordFailed }));
  const mergeDeps = createMergeDeps(config, parts);
  const { redisUrl: url, redisUser: user, redisCaFile: caFile } = config;
  const sentinels = config.redisSentinels && { hosts: config.redisSentinels, name: config.redisSentinelName };
  return createBridge({
    redis: { url, user, password: config.redisPassword?.reveal(), caFile, sentinels },
    concurrency: config.concurrency,
    claimIdleMs: config.claimIdleMs,
    backlogMs: config.backlogMs,
    listMasters: async () => (await reader.listMasters()).map(({ id }) => id),
    answer: (request, call) => answerRewrapped(request, mergeDeps, call),
    async recordRefusal(refusal) {
      events.mergeRefused(refusal.code);
      await refusals.record(refusal);
    },
    events,
  });
}

function createMergeDeps(config: MergerConfig, { bus, auditor, estate }: BridgeParts): MergeDeps {
  const keys = createKeySet({ fetchKeys: (call) => bus.request(kmsJwks, {}, call) });
  return {
    estate,
    verifyToken: createTokenVerifier(keys),
    askKms: (request, call) => bus.request(kmsOpenForMerger, request, call),
    registerMinion: (request, call) =>
      registerMinion(request, (message, c) => bus.request(estateRegisterMinion, message, c), call),
    policy: config.pillarenvPolicy,
    beginRecord: (request) => beginMergeRecord(auditor, request),
  };
}

function serveBus(
  config: MergerConfig,
  bus: Bus,
  estate: EstateCache,
  bridge: Pick<Bridge, 'addRefresh'>,
  events: Events,
) {
  const deps = { estate, policy: config.pillarenvPolicy };
  const oneCompile = createTurnstile();
  const oneExplanation = createTurnstile();
  return bus.serve(
    {
      name: 'pillar-merger',
      version: '0.1.0',
      description: 'Merges pillars, explains a merge, and tells masters whom to refresh.',
      onHandled: events.handled,
    },
    [
      route(mergerExplain, (request, call) => oneExplanation(call, () => explainMerge(request, deps, call))),
      route(mergerCompile, (request, call) => oneCompile(call, () => compilePillars(request, deps, call))),
      route(mergerRefresh, async (request) => ({ entry: await bridge.addRefresh(request) })),
    ],
  );
}
