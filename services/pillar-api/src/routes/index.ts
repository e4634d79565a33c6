import type { Bus } from '@colonnade/bus';
import type { Oidc } from '../auth/oidc.ts';
import type { Changes } from '../changes/changes.ts';
import type { Estate } from '../estate.ts';
import type { Rates } from '../http/rates.ts';
import type { Route } from '../http/route.ts';
import type { Idempotency } from '../idempotency.ts';
import type { TaskIdentities } from '../identity/task-identities.ts';
import type { Kms } from '../kms.ts';
import type { HistoryRetention } from '../retention.ts';
import type { Rewrap } from '../rewrap/worker.ts';
import type { Schemas } from '../templates/schemas.ts';
import { changesRoute } from './changes.ts';
import { collectionRuleRoutes } from './collection-rules.ts';
import { collectionRoutes } from './collections.ts';
import { enrolmentRoute } from './enrolments.ts';
import { type PublishDeps, publishRoute } from './events.ts';
import { explainRoutes } from './explain.ts';
import { exportRoute } from './export.ts';
import { forTargetRoute } from './for-target.ts';
import { generationRoutes } from './generations.ts';
import { hookRoutes } from './hooks.ts';
import { identityRoutes } from './identity.ts';
import { importRoute } from './import.ts';
import { inventoryRoutes } from './inventories.ts';
import { keyRoutes } from './keys.ts';
import type { Lifecycle } from './lifecycle.ts';
import { limitsRoute, type RateSettings } from './limits.ts';
import { masterTokenRoutes } from './master-tokens.ts';
import { masterRoutes } from './masters.ts';
import { minionMoveRoute } from './minion-move.ts';
import { minionRoutes } from './minions.ts';
import { pillarDiffRoutes } from './pillar-diff.ts';
import { pillarListRoute } from './pillar-list.ts';
import { pillarRestoreRoute } from './pillar-restore.ts';
import { pillarVersionsRoute } from './pillar-versions.ts';
import { pillarRoutes } from './pillars.ts';
import { purgeRoute } from './purge.ts';
import { purgeHistoryRoute } from './purge-history.ts';
import { reachRoute } from './reach.ts';
import { relocateRoutes } from './relocate.ts';
import { replaceRoute } from './replace.ts';
import { retentionRoutes } from './retention.ts';
import { revealRoute } from './reveal.ts';
import { revocationRoutes } from './revocations.ts';
import { scopeRestoreRoute } from './scope-restore.ts';
import { searchRoute } from './search.ts';
import { secrecyRoutes } from './secrecy.ts';
import { serviceEnrolmentRoutes } from './service-enrolments.ts';
import { serviceRoutes } from './services.ts';
import { taskTokenRoute } from './task-token.ts';
import { taskRoutes } from './tasks.ts';
import { templateDefaultsRoutes } from './template-defaults.ts';
import { templateRoutes } from './templates.ts';
import { tokenRoutes } from './tokens.ts';
import { whoamiRoute } from './whoami.ts';

/** Every route there is; the README's table and the test of roles are checked against this list. */
export function allRoutes(parts: {
  estate: Estate;
  kms: Kms;
  bus: Pick<Bus, 'request'> & PublishDeps['bus'];
  eventRates: Rates;
  events: PublishDeps['events'] & Parameters<typeof inventoryRoutes>[1];
  idempotency: Idempotency;
  retention: HistoryRetention;
  rewrap: Rewrap;
  oidc: Oidc | undefined;
  changes: Changes;
  rates: RateSettings;
  schemas: Schemas;
  /** For each call of another service that a long request makes, milliseconds. */
  requestBudgetMs: number;
  lifecycle: Lifecycle;
  identities: TaskIdentities;
}): readonly Route[] {
  const { estate, kms, bus, idempotency, retention, rewrap, oidc, rates, changes } = parts;
  const { requestBudgetMs, schemas, lifecycle, identities, eventRates, events } = parts;
  return [
    ...pillarRoutes(estate, kms, idempotency),
    ...secrecyRoutes(estate, kms),
    replaceRoute(estate, kms),
    ...relocateRoutes(estate, kms),
    pillarVersionsRoute(estate),
    ...pillarDiffRoutes(estate),
    pillarRestoreRoute(estate, kms),
    scopeRestoreRoute(estate, kms),
    purgeHistoryRoute(estate),
    purgeRoute(estate),
    ...retentionRoutes(retention),
    pillarListRoute(estate),
    forTargetRoute(estate),
    reachRoute(estate),
    searchRoute(estate),
    importRoute(estate, kms, schemas, requestBudgetMs),
    exportRoute(estate),
    revealRoute(estate, kms),
    ...collectionRoutes(estate, idempotency),
    ...collectionRuleRoutes(estate),
    ...masterRoutes(estate, kms),
    ...masterTokenRoutes(estate, kms),
    enrolmentRoute(estate, kms),
    ...serviceRoutes(estate, kms, schemas),
    ...serviceEnrolmentRoutes(estate, kms),
    publishRoute({ estate, bus, schemas, eventRates, events }),
    ...identityRoutes(estate, kms),
    ...templateRoutes(estate, schemas, idempotency),
    ...templateDefaultsRoutes(estate, kms, schemas),
    ...taskRoutes({ estate, kms, schemas, idempotency, identities }),
    taskTokenRoute(estate, kms),
    ...minionRoutes(estate, lifecycle),
    minionMoveRoute(estate, kms),
    ...inventoryRoutes(estate, events),
    ...tokenRoutes(estate, kms),
    ...revocationRoutes(estate, oidc),
    ...keyRoutes({ kms, estate, rewrap }),
    changesRoute(changes),
    whoamiRoute(),
    limitsRoute(rates),
    ...explainRoutes(estate, bus),
    ...generationRoutes(bus),
    ...hookRoutes(bus),
  ];
}
