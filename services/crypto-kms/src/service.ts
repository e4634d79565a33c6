import { statSync } from 'node:fs';
import { type Auditor, openAuditor } from '@colonnade/audit';
import { type Bus, connectService, type Route, route } from '@colonnade/bus';
import {
  IDENTITY_KEY,
  JWKS_KEEP_S,
  kmsJwks,
  kmsMac,
  kmsOpenForMerger,
  kmsSeal,
  type PublicJwk,
} from '@colonnade/contracts';
import {
  createHealth,
  createMetrics,
  createOpsServer,
  type Logger,
  type OpsRoute,
  type Running,
} from '@colonnade/service-kit';
import { identityRoutes, openRoutes, readerRoutes } from './api-routes.ts';
import { registerBootstrapToken } from './bootstrap.ts';
import { isPrepublishedLongEnough, type KmsConfig, keyPollMs } from './config.ts';
import { createEvents, type Events } from './events.ts';
import { createGrantGuard, type GrantGuard } from './grant-guard.ts';
import { createGrants } from './grants.ts';
import { createWorkloads, openWorkloadState, type Workloads } from './identity/identity.ts';
import { masterVerifier } from './identity/master-credential.ts';
import { loadIdentityKeys } from './identity-keys.ts';
import type { Keyring } from './keyring/keyring.ts';
import { openKeys } from './keyring/open-keys.ts';
import { recordOwnActs } from './keyring/own-acts.ts';
import { type RotationOptions, startRotation } from './keyring/rotation.ts';
import { keyRoutes } from './keyring/routes.ts';
import { loadMac } from './mac-key.ts';
import { createMasterTokens } from './master-token.ts';
import { createMergerOpenHandler } from './open-for-merger.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';
import { openReaders, type Readers } from './readers.ts';
import { createRecordQueue } from './record-queue.ts';
import { checkRoute, resealRoute, rewrapRoute } from './reseal.ts';
import { openRevocations } from './revocations.ts';
import { createSealHandler } from './seal.ts';
import { openStateDir } from './state-dir.ts';
import { tellKeys } from './tell-keys.ts';
import { createTrail, type Trail } from './trail.ts';
import { openUsedGrants } from './used-grants.ts';

export type Kms = Running & { url: string };

const nowS = () => Math.floor(Date.now() / 1000);

/**
 * Starts the KMS: everything it keeps is read and checked before it takes a request.
 * @throws ColonnadeError `misconfigured`, `bus_unavailable`
 */
export async function createKms(config: KmsConfig, deps: { logger: Logger }): Promise<Kms> {
  const { logger } = deps;
  const metrics = createMetrics('crypto-kms');
  const events = createEvents(logger, metrics);
  const state = await openState(config, events);

  await using started = new AsyncDisposableStack();
  const bus = started.use(await connectService('crypto-kms', config, logger));
  const { auditor } = started.use(openAuditor({ bus, service: 'crypto-kms', config, logger, metrics }));
  const queue = started.use(createRecordQueue(config.auditBuffer, events));
  const health = createHealth();
  health.addCheck('nats', () => bus.ping());
  health.addCheck('state', () => void statSync(config.stateDir));
  const ops = started.use(
    await createOpsServer({
      host: config.opsHost,
      port: config.opsPort,
      health,
      metrics,
      logger,
      extraRoutes: [jwksRoute(() => publicKeys())],
    }),
  );
  const trail = createTrail(auditor, queue);
  const guard = createGrantGuard(createGrants(state.readers, state.usedGrants, nowS), trail);
  const limit = createRateLimit(config.opensPerSecond);
  const asks: Asks = { bus, guard, limit, trail, events, nowS };
  const workloads = started.use(
    createWorkloads(config, state.workloads, { ...asks, keys: state.keys, revocations: state.revocations }),
  );
  const { stateDir } = config;
  started.use(await tellKeys({ stateDir, keyrings: state.keyrings, bus, events }));
  const publicKeys = async () => [...state.identity.jwks.keys, ...(await workloads.jwks())];
  for (const keyring of state.keyrings)
    started.use(startRotation(rotationOf(config, keyring, { events, auditor })));
  started.use(
    await bus.serve(
      {
        name: 'crypto-kms',
        version: '0.1.0',
        description: 'Seals, opens, signs and verifies.',
        onHandled: events.handled,
      },
      createRoutes(config, state, asks, workloads),
    ),
  );
  started.defer(() => health.setDraining());
  const running = started.move();
  return {
    url: ops.url,
    announce: { url: ops.url },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

type State = Awaited<ReturnType<typeof openState>>;

async function openState(config: KmsConfig, events: Events) {
  openStateDir(config.stateDir);
  const { keys, keyring } = await openKeys(config, events);
  const identity = await loadIdentityKeys(config.stateDir);
  events.identityLoaded(identity.active.kid);
  const mac = await loadMac(config.stateDir);
  const revocations = await openRevocations(config.stateDir, nowS);
  const readers = await openReaders(config.stateDir);
  await bootstrap(config, readers, events);
  const workloads = await openWorkloadState(config);
  const usedGrants = openUsedGrants(config.stateDir);
  // In the order of their names, which pages of them go by.
  const keyrings = [workloads.keyring, keyring].filter((one) => one !== undefined);
  if (keyrings.length > 0 && !isPrepublishedLongEnough(config))
    events.prepublishedTooShort(config.keyPrepublishS);
  return { keys, keyrings, identity, mac, revocations, readers, usedGrants, workloads };
}

function rotationOf(
  config: KmsConfig,
  keyring: Keyring,
  { events, auditor }: { events: Events; auditor: Auditor },
): RotationOptions {
  const maxAgeS = keyring.name === IDENTITY_KEY ? config.identityKeyMaxAgeS : config.keyMaxAgeS;
  return {
    keyring,
    maxAgeMs: maxAgeS === undefined ? undefined : maxAgeS * 1000,
    pollMs: keyPollMs(config),
    record: recordOwnActs(auditor, keyring.name),
    onRotated: events.keyRotated,
    onRefreshed: events.keysRead,
    onErased: events.keyErased,
    onUsed: (versions) => events.keysUsed(versions, config.keyWarnEncryptions),
    onFault: events.keyringFault,
  };
}

async function bootstrap(config: KmsConfig, readers: Readers, events: Events): Promise<void> {
  if (config.bootstrapTokenFile === undefined) return;
  events.bootstrapRead(await registerBootstrapToken(readers, config.bootstrapTokenFile));
}

/** Who may ask what, and how it goes on record. */
type Asks = {
  bus: Bus;
  guard: GrantGuard;
  limit: RateLimit;
  trail: Trail;
  events: Events;
  nowS: () => number;
};

function createRoutes(config: KmsConfig, state: State, asks: Asks, workloads: Workloads): Route[] {
  const { keys, keyrings, identity, mac, revocations, readers } = state;
  const { guard, limit, trail, events } = asks;
  const issued = createMasterTokens(identity, revocations, nowS);
  const tokens = { ...issued, verify: masterVerifier(issued, workloads.tokens) };
  return [
    route(kmsSeal, createSealHandler(keys, trail, events)),
    route(kmsOpenForMerger, createMergerOpenHandler({ keys, tokens, limit, trail, events })),
    ...openRoutes(keys, guard),
    resealRoute(keys, guard, events),
    checkRoute(keys, trail, events),
    rewrapRoute(keys, trail, events),
    ...keyRoutes(keyrings, guard, events, config.keyUndoS * 1000),
    ...identityRoutes(tokens, revocations, guard, nowS),
    ...readerRoutes(readers, guard),
    route(kmsMac, async ({ sha256_hex }) => ({ mac_hex: mac(sha256_hex) })),
    route(kmsJwks, async () => ({
      issuer: config.identityIssuer,
      keys: [...identity.jwks.keys, ...(await workloads.jwks())],
      master_kids: identity.jwks.keys.map(({ kid }) => kid),
    })),
    ...workloads.routes,
  ];
}

function jwksRoute(publicKeys: () => Promise<PublicJwk[]>): OpsRoute {
  return {
    path: '/.well-known/jwks.json',
    answer: async () => ({
      status: 200,
      contentType: 'application/jwk-set+json',
      body: JSON.stringify({ keys: await publicKeys() }),
      headers: { 'cache-control': `max-age=${JWKS_KEEP_S}` },
    }),
  };
}
