import type {
  ChangeKey,
  MasterRecord,
  MinionRecord,
  PillarRecord,
  TaskRecord,
} from '@colonnade/estate-store';
import { type CollectionTree, createCollectionTree } from './collection-tree.ts';

/** One piece of the estate, as it is cached under its change key. */
export type Piece =
  | { kind: 'scope'; records: readonly PillarRecord[] }
  | { kind: 'collections'; tree: CollectionTree }
  | { kind: 'master'; record: MasterRecord | undefined }
  | { kind: 'minion'; record: MinionRecord | undefined }
  | { kind: 'task'; record: TaskRecord | undefined };

/** The estate at one moment. */
export type EstateView = {
  master(id: string): MasterRecord | undefined;
  minion(master: string, id: string): MinionRecord | undefined;
  task(id: string): TaskRecord | undefined;
  tree(): CollectionTree;
  /** The pillars of one pillarenv. */
  scope(pillarenv: string): readonly PillarRecord[];
};

/** What became of a computation: what it used, and its end, which counts only if nothing was missing. */
export type Attempt<T> = {
  used: ReadonlyMap<ChangeKey, Piece | undefined>;
  missing: boolean;
  /** Returns the result, or throws what the computation threw. */
  outcome: () => T;
};

export const COLLECTIONS_KEY = 'collections' satisfies ChangeKey;
const NOTHING: readonly PillarRecord[] = [];
const EMPTY_TREE = createCollectionTree([]);

export function scopeKey(pillarenv: string): ChangeKey {
  return `scope:${pillarenv}`;
}

export function masterKey(id: string): ChangeKey {
  return `master:${id}`;
}

export function minionKey(master: string, id: string): ChangeKey {
  return `minion:${master}/${id}`;
}

export function taskKey(id: string): ChangeKey {
  return `task:${id}`;
}

/**
 * Runs a computation on the pieces at hand and notes which ones it used. A missing piece reads as empty; then the
 * outcome is worthless, but `used` tells what to fetch before the next attempt.
 */
export function attempt<T>(
  lookup: (key: ChangeKey) => Piece | undefined,
  compute: (view: EstateView) => T,
): Attempt<T> {
  const used = new Map<ChangeKey, Piece | undefined>();
  let missing = false;
  const take = (key: ChangeKey): Piece | undefined => {
    const piece = used.get(key) ?? lookup(key);
    used.set(key, piece);
    missing ||= piece === undefined;
    return piece;
  };
  const outcome = settle(() => compute(viewOf(take)));
  return { used, missing, outcome };
}

function viewOf(take: (key: ChangeKey) => Piece | undefined): EstateView {
  return {
    master: (id) => {
      const piece = take(masterKey(id));
      return piece?.kind === 'master' ? piece.record : undefined;
    },
    minion: (master, id) => {
      const piece = take(minionKey(master, id));
      return piece?.kind === 'minion' ? piece.record : undefined;
    },
    task: (id) => {
      const piece = take(taskKey(id));
      return piece?.kind === 'task' ? piece.record : undefined;
    },
    tree: () => {
      const piece = take(COLLECTIONS_KEY);
      return piece?.kind === 'collections' ? piece.tree : EMPTY_TREE;
    },
    scope: (pillarenv) => {
      const piece = take(scopeKey(pillarenv));
      return piece?.kind === 'scope' ? piece.records : NOTHING;
    },
  };
}

function settle<T>(work: () => T): () => T {
  try {
    const result = work();
    return () => result;
  } catch (thrown) {
    return () => {
      throw thrown;
    };
  }
}
