import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { CollectionRecord } from '@colonnade/estate-store';

/** The collections of the estate, ready to be walked upwards. */
export type CollectionTree = {
  get(id: string): CollectionRecord | undefined;
  /**
   * Root first, the collection itself last (seed 000, get_ancestors_ids with include_self); empty when unknown.
   * Throws `internal` when the tree is deeper than its limit, which a cycle is too.
   */
  branch(id: string): readonly string[];
};

export function createCollectionTree(records: readonly CollectionRecord[]): CollectionTree {
  const byId = new Map(records.map((record) => [record.id, record]));
  return {
    get: (id) => byId.get(id),
    branch(id) {
      const branch: string[] = [];
      for (let at = byId.get(id); at !== undefined; at = parentOf(at, byId)) {
        if (branch.push(at.id) > LIMITS.collectionDepth) {
          throw new ColonnadeError('internal', 'the collection tree is deeper than its limit');
        }
      }
      return branch.reverse();
    },
  };
}

/** A parent that is not there would leave out the pillars of a whole branch without a word. */
function parentOf(
  record: CollectionRecord,
  byId: ReadonlyMap<string, CollectionRecord>,
): CollectionRecord | undefined {
  if (record.parentId === undefined) return undefined;
  const parent = byId.get(record.parentId);
  if (parent === undefined)
    throw new ColonnadeError('internal', 'a collection has a parent that does not exist');
  return parent;
}
