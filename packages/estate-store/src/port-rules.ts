import type { MinionRecord } from './port.ts';

/** A minion with its memberships by name. */
export type MinionDraft = Omit<MinionRecord, 'tick' | 'byRule'>;

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
