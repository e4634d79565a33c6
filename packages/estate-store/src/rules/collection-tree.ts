import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { Mutation } from '../port.ts';

type Draft = Extract<Mutation, { kind: 'collection.put' }>['record'];

/** What an adapter finds out about the place a collection is put in; asked for only when it has a parent. */
export type TreePlace = {
  parent: { owner: string } | undefined;
  /** The parent is the collection itself or stands below it. */
  isBelowItself: boolean;
  /** Level of the parent; 1 for a root collection. */
  parentLevel: number;
  /** Levels of the collection with all below it; 1 when it is a leaf or new. */
  height: number;
};

/** @throws ColonnadeError not_found (parent) | conflict (cycle, owner, depth) */
export function checkTreePlace(record: Draft, place: TreePlace): void {
  if (place.parent === undefined && record.parentId !== record.id) {
    throw new ColonnadeError('not_found', 'no such parent collection', { field: 'parentId' });
  }
  if (place.isBelowItself) {
    throw new ColonnadeError('conflict', 'the collection would be below itself', { field: 'parentId' });
  }
  if (place.parent?.owner !== record.owner) {
    throw new ColonnadeError('conflict', 'a collection has the owner of its parent', { field: 'owner' });
  }
  if (place.parentLevel + place.height <= LIMITS.collectionDepth) return;
  throw new ColonnadeError('conflict', `the tree would be deeper than ${LIMITS.collectionDepth} levels`, {
    field: 'parentId',
  });
}

/**
 * The owner is part of a collection's pillarenv and so of the AAD of its secrets: with pillars it stays.
 * @throws ColonnadeError conflict
 */
export function checkOwnerMayChange(treeHasPillars: boolean): void {
  if (!treeHasPillars) return;
  throw new ColonnadeError('conflict', 'the owner cannot change while the tree has pillars', {
    field: 'owner',
  });
}
