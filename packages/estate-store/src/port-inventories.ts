import type { Value } from '@colonnade/value';

/** The part of the port that is about inventories: what minions tell of themselves. */

export type InventoryRecord = {
  master: string;
  /** Of the minion. */
  id: string;
  facts: Value;
  receivedBy: string;
  /** Milliseconds since the epoch. */
  receivedAtMs: number;
  /** Its minion is registered with the master. False: it waits for somebody to accept it. */
  accepted: boolean;
  /** Of its last change: received anew, or accepted. */
  tick: number;
};

export type InventoryMutation =
  /** The master must exist (unknown_master). Who and when are those of the batch; `accepted` follows from the minion. */
  | {
      kind: 'inventory.put';
      expect: number | 'absent' | undefined;
      record: Pick<InventoryRecord, 'master' | 'id' | 'facts'>;
    }
  /** Refused (conflict) once its minion is accepted: it goes with the minion. */
  | { kind: 'inventory.delete'; master: string; id: string; expect: number | undefined };

export type InventoryFilter = { master?: string; accepted?: boolean };

export interface InventoryReads {
  getInventory(master: string, id: string): Promise<InventoryRecord | undefined>;
  /** Ordered by master and id. */
  listInventories(
    filter: InventoryFilter,
    page: { after: string | undefined; limit: number },
  ): Promise<{ rows: readonly InventoryRecord[]; next: string | undefined }>;
}
