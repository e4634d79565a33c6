import { randomUUID } from 'node:crypto';
import { type Auditor, openAuditor } from '@colonnade/audit';
import { type Bus, connectService, type Route } from '@colonnade/bus';
import { type EstateStore, openEstateStore } from '@colonnade/estate-store';
import { placeOf } from '@colonnade/estate-store/settings';
import { createKeySet } from '@colonnade/identity';
import {
  createHealth,
  createMetrics,
  type Health,
  type Logger,
  opsRoutes,
  type Running,
} from '@colonnade/service-kit';
import { createAudit, recordSuppressed } from './audit.ts';
import { createDenialLimit } from './auth/denial-limit.ts';
import { readOidc } from './auth/read-oidc.ts';
import { createTokenUse } from './auth/token-use.ts';
import { createWorkloads } from './auth/workload.ts';
import { registerBootstrapToken } from './bootstrap.ts';
import { startSweeping } from './bulk/sweep.ts';
import { createChanges } from './changes/changes.ts';
import type { PillarApiConfig } from './config.ts';
import { createEstate } from './estate.ts';
import { createEvents, type Events } from './events.ts';
import { createApp } from './http/app.ts';
import { createRates } from './http/rates.ts';
import { createIdempotency } from './idempotency.ts';
import { discoveryRoutes } from './identity/discovery.ts';
import { createTaskIdentities } from './identity/task-identities.ts';
import { startTaskStates } from './identity/task-states.ts';
import { createKms, type Kms } from './kms.ts';
import { listTouchedRoute } from './list-touched.ts';
import { settleAll } from './membership/settle.ts';
import { openApiRoutes } from './openapi/serve.ts';
import { registerMinionRoute } from './register-minion.ts';
import { type Relay, startRelay } from './relay.ts';
import { startRetention } from './retention.ts';
import { startRewrap } from './rewrap/worker.ts';
import { allRoutes } from './routes/index.ts';
import { createLifecycle } from './routes/lifecycle.ts';
import { createSchemas } from './templates/schemas.ts';

const SERVICE = { name: 'pillar-api', version: '0.1.0', description: 'Owns the estate; HTTP' } as const;

/** Starts pillar-api: store, bus, relay, HTTP. Disposing stops taking requests, finishes those under way, drains. */
export async function createPillarApi(
  config: PillarApiConfig,
  logger: Logger,
): Promise<Running & { url: string }> {
  await using stack = new AsyncDisposableStack();
  const metrics = createMetrics(SERVICE.name);
  const events = createEvents(logger, metrics);
  const store = stack.use(await openEstateStore(placeOf(config), { newIncarnation: config.storeRestored }));
  await registerBootstrapToken(store, config.bootstrapTokenFile, events);
  const bus = stack.use(await connectService(SERVICE.name, config, logger));
  const relay = stack.use(createRelay(config, store, bus, events));
  stack.use(startSweeping(store, events));
  const changes = createChanges({ store, pollMs: config.changesPollMs, failed: events.changesFailed });
  const taskStates = stack.use(startTaskStates({ store, bus, onFault: events.taskStatesFailed }));
  const estate = createEstate(store, () => {
    relay.wake();
    taskStates.wake();
    changes.wake();
  });
  settleAll(estate, SERVICE.name).then(events.membershipsSettled, events.membershipsFailed);
  const kms = createKms(bus);
  const keys = createKeySet({ fetchKeys: (call) => kms.jwks(call) });
  const identities = createTaskIdentities({ store, kms, taskStates, events });
  const lifecycle = createLifecycle(estate, bus, config.deletionHooks);
  const { auditor, watch } = stack.use(openAuditor({ bus, service: SERVICE.name, config, logger, metrics }));
  const { minionsPerMaster, minionsPerMinute } = config;
  const limits = { minionsPerMaster, minionsPerMinute };
  const register = registerMinionRoute({ estate, keys, lifecycle, auditor, events, ...limits });
  stack.use(await serveBus(bus, [register, listTouchedRoute(store)], events));
  const retention = stack.use(createRetention(config, store, auditor, events));
  const rewrap = stack.use(createRewrap(config, store, kms, auditor, events));
  const audit = stack.use(createAudit({ auditor, watch, mode: config.auditMode, store }));
  const oidc = readOidc(config);
  const schemas = stack.use(createSchemas());
  const health = createHealth();
  addChecks(health, store, bus, config.outboxMaxAgeMs);
  const denials = stack.use(
    createDenialLimit({
      perMinute: config.denialsPerMinute,
      report: (what) =>
        recordSuppressed(auditor, SERVICE.name, what).catch((error) =>
          events.suppressedUnrecorded({ total: what.total, error }),
        ),
    }),
  );
  const idempotency = createIdempotency(store, kms);
  const { requestBudgetMs } = config;
  const shared = { estate, kms, bus, oidc, changes, rates: config, idempotency, retention, rewrap };
  const { eventsPerMinute: perMinute } = config;
  const eventRates = createRates({ perMinute, burst: perMinute });
  const routes = allRoutes({
    ...shared,
    eventRates,
    events,
    schemas,
    lifecycle,
    identities,
    requestBudgetMs,
  });
  const app = createApp({
    authenticator: { store, oidc, workloads: createWorkloads(store, keys), noteUse: createTokenUse(store) },
    rates: createRates({ perMinute: config.requestsPerMinute, burst: config.requestsBurst }),
    routes,
    opsRoutes: [...opsRoutes(health, metrics), ...openApiRoutes(routes), ...discoveryRoutes(keys)],
    metricsAnonymous: config.metricsAnonymous,
    denials,
    audit,
    trustedProxies: config.trustedProxies,
    events,
    requestBudgetMs: config.requestBudgetMs,
  });
  stack.defer(() => app.close());
  // Before the app: it waits for open answers to end.
  stack.use(changes);
  const url = await app.listen({ host: config.httpHost, port: config.httpPort });
  stack.defer(() => health.setDraining());
  const owned = stack.move();
  return { url, announce: { url }, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function createRelay(config: PillarApiConfig, store: EstateStore, bus: Bus, events: Events): Relay {
  const { relayPollMs: pollMs, relayLeaseMs: leaseMs } = config;
  return startRelay({ store, bus, events, holder: randomUUID(), pollMs, leaseMs });
}

function createRetention(config: PillarApiConfig, store: EstateStore, auditor: Auditor, events: Events) {
  const { historyKeepVersions: keepVersions, historyKeepDays: keepDays, historyRunMs: runMs } = config;
  return startRetention({ keepVersions, keepDays, runMs }, { store, auditor, events, holder: randomUUID() });
}

function createRewrap(
  config: PillarApiConfig,
  store: EstateStore,
  kms: Kms,
  auditor: Auditor,
  events: Events,
) {
  const { rewrapPerSecond: perSecond, rewrapRunMs: runMs } = config;
  return startRewrap({ perSecond, runMs }, { store, kms, auditor, events, holder: randomUUID() });
}

function serveBus(bus: Bus, routes: readonly Route[], events: Events) {
  return bus.serve({ ...SERVICE, onHandled: events.busHandled }, routes);
}

function addChecks(health: Health, store: EstateStore, bus: Bus, outboxMaxAgeMs: number): void {
  health.addCheck('store', () => store.ping());
  health.addCheck('nats', () => bus.ping());
  health.addCheck('outbox', async () => {
    const [oldest] = await store.readOutbox(1);
    const ageMs = oldest === undefined ? 0 : Date.now() - oldest.timeMs;
    if (ageMs > outboxMaxAgeMs) throw new Error(`an event waits for ${Math.round(ageMs / 1000)} s`);
  });
}
