import type {
  ApiTokenRecord,
  Clock,
  CollectionRecord,
  IdempotencyDraft,
  MasterRecord,
  MinionRecord,
  OutboxRow,
  PillarRecord,
} from '../port.ts';
import type { HistoryFloor, PillarVersion } from '../port-history.ts';
import type { InventoryRecord } from '../port-inventories.ts';
import type { RewrapProgress } from '../port-keys.ts';
import type { ServiceRecord } from '../port-services.ts';
import type { TaskRecord, TemplateRecord } from '../port-tasks.ts';

/** An answer kept for a repeated request. */
export type KeptAnswer = IdempotencyDraft & { tick: number };

/** Of a lease only its fence outlives a copy: it must never go down. */
export type KeptFence = { name: string; fence: number };

/** All that makes an estate, beside its clock. What changed, and who writes, does not outlive a copy. */
export type ArchiveRows = {
  collections: CollectionRecord;
  masters: MasterRecord;
  minions: MinionRecord;
  tokens: ApiTokenRecord;
  pillars: PillarRecord;
  versions: PillarVersion;
  outbox: OutboxRow;
  answers: KeptAnswer;
  fences: KeptFence;
  templates: TemplateRecord;
  tasks: TaskRecord;
  inventories: InventoryRecord;
  services: ServiceRecord;
};

export type ArchiveTable = keyof ArchiveRows;

export const ARCHIVE_TABLES: readonly ArchiveTable[] = [
  ...(['collections', 'masters', 'minions', 'tokens', 'pillars', 'versions'] as const),
  ...(['outbox', 'answers', 'fences', 'templates', 'tasks', 'inventories', 'services'] as const),
];

/** Rows handed over at once. */
export const ARCHIVE_CHUNK = 500;

/** Reads a table whole, in the order of its key, which is that of UTF-8 bytes in every adapter. */
export type ReadRows = <T extends ArchiveTable>(table: T) => AsyncIterable<readonly ArchiveRows[T][]>;

/** What stands beside the clock. Writes that make no tick leave their trace here: trimming, rewrapping, closing a key. */
export type ArchiveMarks = {
  /** As in `ScopeHistory`: what a copy must not take for known. */
  historyFloor: HistoryFloor;
  closedKids: readonly string[];
  rewrap: RewrapProgress | undefined;
};

/** An estate to be read whole. */
export interface ArchiveSource extends AsyncDisposable {
  readClock(): Promise<Clock>;
  readMarks(): Promise<ArchiveMarks>;
  readRows: ReadRows;
}

/** A place that becomes an estate when the copy is finished, and none when it is only disposed of. */
export interface ArchiveTarget extends AsyncDisposable {
  append<T extends ArchiveTable>(table: T, rows: readonly ArchiveRows[T][]): Promise<void>;
  /** What was appended. */
  readRows: ReadRows;
  /** Makes it an estate with this tick and an incarnation of its own. */
  finish(tick: number, marks: ArchiveMarks): Promise<Clock>;
}
