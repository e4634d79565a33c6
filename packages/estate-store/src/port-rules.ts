import type { CollectionRecord, Expect, MinionRecord } from './port.ts';

/** A minion with its memberships by name. */
export type MinionDraft = Omit<MinionRecord, 'tick' | 'byRule'>;

/** Creates with expect 'absent', else renames or moves under another parent. Cycles and depth are refused here. */
export type CollectionPut = {
  kind: 'collection.put';
  expect: Expect;
  record: Omit<CollectionRecord, 'tick' | 'rule'>;
  /** As in `collection.rule`; null: it has none from now on; left out: the one it has stays. */
  rule?: string | null;
};

/** Members by rule: the store keeps rules and who satisfies them, and evaluates none. */
export type RuleMutation =
  /** The rule of a collection, canonical JSON; undefined: it has none from now on. */
  | { kind: 'collection.rule'; id: string; expect: number | undefined; rule: string | undefined }
  /** The memberships of a minion by rule, in their order; those by name stay. Every collection must exist (not_found). */
  | {
      kind: 'minion.ruled';
      master: string;
      id: string;
      expect: number | undefined;
      collections: readonly string[];
    };
