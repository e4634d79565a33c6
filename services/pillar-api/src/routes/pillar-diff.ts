import { ColonnadeError, zDiffQuery, zPillarDiff, zPillarVersion, zVersionPath } from '@colonnade/contracts';
import type { EstateStore, PillarVersion } from '@colonnade/estate-store';
import { valuesEqual } from '@colonnade/value';
import { requireOn } from '../auth/scope.ts';
import { diffValues } from '../diff.ts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { viewVersion } from './pillar-versions.ts';

/** One version of a pillar, and what differs between two: also of a pillar that is gone. */
export function pillarDiffRoutes(estate: Estate): readonly Route[] {
  return [versionRoute(estate), diffRoute(estate)];
}

function versionRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/:pid/versions/:tick',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    params: zVersionPath,
    response: zPillarVersion,
    async handle({ principal, params }) {
      const version = await estate.store.getVersion(params.pid, Number(params.tick));
      if (version === undefined) throw new ColonnadeError('not_found', 'there is no such version');
      await requireOn(principal, 'estate:read', version);
      return { status: 200, body: viewVersion(version) };
    },
  });
}

function diffRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/:pid/diff',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zDiffQuery,
    response: zPillarDiff,
    async handle({ principal, params, query }) {
      const newest = await estate.store.getVersion(params.pid ?? '');
      if (newest === undefined) throw new ColonnadeError('not_found', 'there is no such pillar');
      const from = await findVersion(estate.store, newest.pid, Number(query.from), 'from');
      const to =
        query.to === undefined ? newest : await findVersion(estate.store, newest.pid, Number(query.to), 'to');
      for (const version of [from, to]) await requireOn(principal, 'estate:read', version);
      return { status: 200, body: viewDiff(from, to) };
    },
  });
}

/** @throws ColonnadeError `unprocessable`: it never was, or the retention has removed it */
export async function findVersion(
  store: Pick<EstateStore, 'getVersion'>,
  pid: string,
  tick: number,
  field: string,
): Promise<PillarVersion> {
  const version = await store.getVersion(pid, tick);
  if (version !== undefined) return version;
  throw new ColonnadeError('unprocessable', `${field}: the pillar has no version of this clock`, { field });
}

/**
 * Of a secret it only says whether what is sealed is the same: one that was sealed anew counts as another, since
 * whoever could ask whether the plaintext is the same could guess it.
 */
function viewDiff(from: PillarVersion, to: PillarVersion) {
  const [{ value: _from, ...before }, { value: _to, ...after }] = [viewVersion(from), viewVersion(to)];
  const versions = { pid: from.pid, from: before, to: after };
  if (from.tick !== to.tick && (from.purged || to.purged))
    return { ...versions, value_changed: null, changes: [], changes_more: false };
  const isSame = from.isSecret === to.isSecret && valuesEqual(from.value, to.value);
  if (isSame || from.isSecret || to.isSecret)
    return { ...versions, value_changed: !isSame, changes: [], changes_more: false };
  const { changes, more } = diffValues(from.value, to.value);
  return { ...versions, value_changed: true, changes, changes_more: more };
}
