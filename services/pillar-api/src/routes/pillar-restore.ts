import {
  type Call,
  ColonnadeError,
  type PillarContext,
  pillarAad,
  zPillarRestore,
  zPillarView,
} from '@colonnade/contracts';
import type { PillarRecord, PillarVersion } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { type Conditions, checkIfMatch, etagOf } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { findUnopenable } from '../kms-check.ts';
import { resealAll } from '../sealed-batch.ts';
import { viewPillar } from '../views.ts';
import { findVersion } from './pillar-diff.ts';
import { asNamedTwin, requireNamePermission } from './pillars.ts';

/**
 * `POST /pillars/{pid}/restore`: the value of an earlier version as a new one, where the pillar stands now; a pillar
 * that was deleted comes back under its own pid, name and target. It stays what it is: a secret or none.
 */
export function pillarRestoreRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/restore',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zPillarRestore,
    response: zPillarView,
    async handle({ principal, params, body, conditions, call }) {
      const { now, isDeleted } = await findNow(estate, params.pid ?? '', conditions);
      await requireOn(principal, 'pillar:write', now);
      requireNamePermission(principal, now.name);
      const version = await findVersion(estate.store, now.pid, body.tick, 'tick');
      await requireOn(principal, 'estate:read', version);
      checkRestorable(version, now);
      const value = await valueFor(kms, principal, version, now, call);
      const { pid, tgtType, tgtId, pillarenv, name, isSecret } = now;
      const record = { pid, tgtType, tgtId, pillarenv, name, value, isSecret };
      const { clock, atMs } = await estate
        .write({
          by: principal.sub,
          mutations: [{ kind: 'pillar.restore', expectTick: now.tick, record }],
          events: [pillarEvent(isDeleted ? 'pillar.created' : 'pillar.updated', record)],
        })
        .catch(async (thrown) => {
          throw await asNamedTwin(estate, record, thrown);
        });
      const { createdBy, createdAtMs } = now;
      const written = {
        createdBy,
        createdAtMs,
        updatedBy: principal.sub,
        updatedAtMs: atMs,
        tick: clock.tick,
      };
      const view = viewPillar({ ...record, ...written }, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

/** If-Match for one that is there; If-None-Match: * says that one is known to be gone. */
async function findNow(
  estate: Estate,
  pid: string,
  conditions: Conditions,
): Promise<{ now: PillarRecord; isDeleted: boolean }> {
  const pillar = await estate.store.getPillar(pid);
  if (pillar !== undefined) {
    if (conditions.ifNoneMatch !== undefined)
      throw new ColonnadeError('precondition_failed', 'the pillar is there', { field: 'If-None-Match' });
    checkIfMatch(conditions, etagOf(pid, await estate.incarnation(), pillar.tick));
    return { now: pillar, isDeleted: false };
  }
  const last = await estate.store.getVersion(pid);
  if (last === undefined) throw new ColonnadeError('not_found', 'there is no such pillar');
  if (conditions.ifMatch !== undefined)
    throw new ColonnadeError('precondition_failed', 'the pillar was deleted', { field: 'If-Match' });
  if (conditions.ifNoneMatch === undefined) {
    const how = 'the pillar was deleted: send If-None-Match: * to bring it back';
    throw new ColonnadeError('precondition_required', how, { field: 'If-None-Match' });
  }
  return { now: last, isDeleted: true };
}

/** Secret and plain change only by the routes that say so by name. @throws ColonnadeError `conflict` */
function checkRestorable(version: PillarVersion, now: PillarRecord): void {
  if (version.purged)
    throw new ColonnadeError('conflict', 'the value of this version was purged, and is gone for good');
  if (version.isSecret === now.isSecret) return;
  const [then, is, how] = version.isSecret
    ? ['sealed', 'plain', 'POST /pillars/{pid}/seal']
    : ['plain', 'a secret', 'POST /pillars/{pid}/unseal'];
  throw new ColonnadeError(
    'conflict',
    `this version is ${then} and the pillar ${is}: change that first, with ${how}`,
  );
}

/** A sealed value is used again as it is only where it was sealed for, and only while it opens there. */
async function valueFor(
  kms: Kms,
  principal: Principal,
  version: PillarVersion,
  now: PillarContext,
  call: Call,
): Promise<Value> {
  if (!version.isSecret) return version.value;
  if (pillarAad(version) !== pillarAad(now)) {
    const [value] = await resealAll(kms, principal, [{ from: version, to: now, value: version.value }], call);
    return value as Value;
  }
  const bad = await findUnopenable(kms, [{ context: version, value: version.value }], call);
  if (bad.size === 0) return version.value;
  throw new ColonnadeError(
    'conflict',
    'this version does not open any more: it was sealed with a key that crypto-kms does not have',
  );
}
