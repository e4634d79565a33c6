import type { TgtType } from '@colonnade/contracts';
import type {
  Clock,
  CollectionRecord,
  MasterRecord,
  MinionRecord,
  Mutation,
  OutboxDraft,
  PillarRecord,
} from './port.ts';
import type { InventoryRecord } from './port-inventories.ts';
import type { ServiceRecord } from './port-services.ts';
import type { TaskRecord, TemplateRecord } from './port-tasks.ts';

/** The part of the port that is about many records at once: imports, exports, search. */

/** What an import may change. */
export type ImportChange = Extract<
  Mutation,
  {
    kind:
      | ('pillar.create' | 'pillar.update' | 'collection.put' | 'master.put' | 'minion.put')
      | ('inventory.put' | 'template.put' | 'task.copy' | 'task.setState' | 'service.put');
  }
>;

/**
 * An import is staged in small transactions, which nobody sees and which move no clock, and applied in one. What is
 * staged and never applied is dropped, or swept later.
 */
export interface ImportWrites {
  /** Adds changes to those staged under this id, in their order. At most LIMITS.importStageRows at a time. */
  stageImport(id: string, changes: readonly ImportChange[]): Promise<void>;
  /**
   * Makes all staged changes in one transaction, with one tick: first everything but pillars, in its order, then
   * the pillars. What was staged is gone after it.
   * @param batch `changes`: how many were staged, so that nothing is applied in part
   * @throws ColonnadeError `precondition_failed` when anything is not as expected any more; what the mutations say of
   *   targets; `conflict` when not all of it is staged. Nothing is changed then
   */
  applyImport(
    id: string,
    batch: { changes: number; by: string; atMs: number; events: readonly OutboxDraft[] },
  ): Promise<{ clock: Clock }>;
  /** Forgets what is staged under this id, also when there is nothing. */
  dropImport(id: string): Promise<void>;
  /** Forgets imports to which nothing was added for so long. @returns how many */
  sweepImports(idleMs: number): Promise<number>;
}

/** What one moment of the estate holds, table by table, in the order of their keys. */
export type ViewRows = {
  /** By id. */
  collections: CollectionRecord;
  /** By id. */
  masters: MasterRecord;
  /** By master and id. */
  minions: MinionRecord;
  /** By master and id. */
  inventories: InventoryRecord;
  /** By id. */
  templates: TemplateRecord;
  /** By id. */
  tasks: TaskRecord;
  /** By id. */
  services: ServiceRecord;
  /** By target type, target, name and environment. */
  pillars: PillarRecord;
};

/** One moment of the estate, however long it takes to read it. To be disposed of: it holds on to what it reads. */
export interface EstateView extends AsyncDisposable {
  clock: Clock;
  /** In small pages, at most once for each table. @throws ColonnadeError `unavailable`, also when the moment is too old */
  pages<K extends keyof ViewRows>(table: K): AsyncIterable<readonly ViewRows[K][]>;
}

export type PillarSearch = {
  tgtTypes: readonly TgtType[];
  pillarenvs?: readonly string[];
  name?: string;
  namePrefix?: string;
  /** A part of the canonical text of a plain value; then secrets are never found. */
  value?: string;
  createdBy?: string;
  updatedBy?: string;
  /** When it was changed last, milliseconds since the epoch: from and with `sinceMs`, before `untilMs`. */
  sinceMs?: number;
  untilMs?: number;
};

export interface BulkReads {
  /** Opens the estate as it is now. */
  openView(): Promise<EstateView>;
  /**
   * Looks at the next SEARCH_SLICE pillars in the order of their pids and gives those that fit: maybe none, though there
   * is a next slice. `next` goes into the following call.
   */
  searchPillars(
    search: PillarSearch,
    page: { after: string | undefined; limit: number },
  ): Promise<{ rows: readonly PillarRecord[]; next: string | undefined }>;
}

/** Pillars one call of `searchPillars` looks at: with the largest values a few dozen milliseconds. */
export const SEARCH_SLICE = 200;

export interface BulkStore extends ImportWrites, BulkReads {}
