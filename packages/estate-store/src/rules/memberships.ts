import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { MinionRecord } from '../port.ts';

type Memberships = Pick<MinionRecord, 'collections' | 'byRule'>;

/** The memberships by name, in their order. */
export function namedCollections({ collections, byRule = [] }: Memberships): readonly string[] {
  return byRule.length === 0 ? collections : collections.filter((id) => !byRule.includes(id));
}

/** Both kinds in one list: by rule first, so that what somebody named wins; what is both is by name. */
export function joinMemberships(named: readonly string[], byRule: readonly string[]): Memberships {
  const ruled = byRule.filter((id) => !named.includes(id));
  return { collections: [...ruled, ...named], ...(ruled.length === 0 ? {} : { byRule: ruled }) };
}

/** @throws ColonnadeError unknown_master */
export function checkMasterKnown(isThere: boolean): void {
  if (!isThere) throw new ColonnadeError('unknown_master', 'no such master', { field: 'master' });
}

/** @throws ColonnadeError forbidden */
export function checkRoomForMinion(count: number, max: number): void {
  if (count < max) return;
  throw new ColonnadeError('forbidden', `the master has ${max} minions, and may have no more by itself`);
}

/** @throws ColonnadeError bad_request (a collection twice, too many) */
export function checkMembershipList(collections: readonly string[]): void {
  if (new Set(collections).size !== collections.length) {
    throw new ColonnadeError('bad_request', 'a collection is named twice', { field: 'collections' });
  }
  if (collections.length > LIMITS.collectionsPerMinion) {
    const why = `a minion is a member of at most ${LIMITS.collectionsPerMinion} collections`;
    throw new ColonnadeError('bad_request', why, { field: 'collections' });
  }
}

/** @throws ColonnadeError not_found, with the place of the first collection that is not there */
export function checkMembershipsKnown(
  collections: readonly string[],
  isThere: (id: string) => boolean,
): void {
  const missing = collections.findIndex((id) => !isThere(id));
  if (missing < 0) return;
  throw new ColonnadeError('not_found', 'no such collection', { field: `collections.${missing}` });
}
