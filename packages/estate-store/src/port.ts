import type { ScopedRole, TgtType } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { BulkStore } from './port-bulk.ts';
import type { HistoryStore } from './port-history.ts';
import type { InventoryMutation, InventoryReads } from './port-inventories.ts';
import type { KeyStore } from './port-keys.ts';
import type { CollectionPut, MinionDraft, RuleMutation } from './port-rules.ts';
import type { ServiceMutation, ServiceReads } from './port-services.ts';
import type { TaskMutation, TaskReads, TaskRecord } from './port-tasks.ts';

/**
 * The port of the estate. One writer (pillar-api), any number of readers (pillar-merger). Every write is a batch of
 * mutations in one transaction, which raises the clock by one and leaves history rows, change keys and outbox rows
 * behind.
 */

/** The one clock of the estate. A restore changes the incarnation, and then nothing cached may be used. */
export type Clock = { incarnation: string; tick: number };

export type PillarRecord = {
  /** Stable identity of a pillar; never reused, also not when the pillar is made again. */
  pid: string;
  tgtType: TgtType;
  tgtId: string;
  pillarenv: string;
  name: string;
  /** The plain value, or `{ "$enc": … }` when isSecret. */
  value: Value;
  isSecret: boolean;
  createdBy: string;
  updatedBy: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  updatedAtMs: number;
  /** Tick of the last change: with the pid it makes the ETag. */
  tick: number;
};

export type CollectionRecord = {
  id: string;
  name: string;
  parentId: string | undefined;
  /** User sub; the whole tree below a root collection has one owner. */
  owner: string;
  /** Canonical JSON of the rule that makes minions members; absent: there is none. */
  rule?: string;
  tick: number;
};

export type MasterRecord = {
  /** The logical master id; a failover group shares one. */
  id: string;
  /** Plain environments its minions may ask for, beside `base`. */
  envs: readonly string[];
  /** jti of the tokens that are valid now. */
  tokenIds: readonly string[];
  onUnknownMinion: 'register' | 'refuse';
  tick: number;
};

export type MinionRecord = {
  master: string;
  id: string;
  /** Direct memberships, those by rule (`byRule`; absent: none) before those by name: a later one wins. */
  collections: readonly string[];
  byRule?: readonly string[];
  registeredBy: string;
  tick: number;
};

export type Role = 'viewer' | 'editor' | 'secret-reader' | 'admin';

export type ApiTokenRecord = {
  id: string;
  /** Hex SHA-256 of the whole token; the token has 256 random bits, so no salt is needed. */
  hash: string;
  sub: string;
  /** For the whole estate. */
  roles: readonly Role[];
  /** For parts of it. */
  scopedRoles: readonly ScopedRole[];
  createdAtMs: number;
  expiresAtMs: number | undefined;
  /** Written now and then, outside of the clock: see `noteTokenUse`. */
  lastUsedAtMs: number | undefined;
  tick: number;
};

/** `tick` a record must have now; `absent`: it must not exist; undefined: it must exist. */
export type Expect = number | 'absent' | undefined;

/** A pillar without what the write itself says of it. */
export type PillarDraft = Omit<
  PillarRecord,
  'tick' | 'updatedBy' | 'createdAtMs' | 'updatedAtMs' | 'createdBy'
>;

export type Mutation =
  | { kind: 'pillar.create'; record: PillarDraft }
  /**
   * Replaces value and isSecret of an existing pillar; everything else of it stays. When a plain pillar becomes a
   * secret, the values of all its earlier plain versions are purged in the same transaction, and before the answer
   * the adapter sees to it that nothing of them is left in its files.
   */
  | { kind: 'pillar.update'; pid: string; expectTick: number | undefined; value: Value; isSecret: boolean }
  | { kind: 'pillar.delete'; pid: string; expectTick: number | undefined }
  /** Gives a pillar another place, and the value as it is to stand there; the rest of it stays, its pid too. */
  | {
      kind: 'pillar.move';
      pid: string;
      expectTick: number;
      place: Pick<PillarRecord, 'tgtType' | 'tgtId' | 'pillarenv' | 'name'>;
      value: Value;
    }
  /**
   * Makes a pillar what the record says, under its own pid; also one that was deleted, whose expectTick is then that of
   * its deletion. Who made it, and when, stays.
   */
  | { kind: 'pillar.restore'; expectTick: number; record: PillarDraft }
  /** Deletes it when it is still there, and removes its whole history; nothing of its values is left in the files. */
  | { kind: 'pillar.purge'; pid: string; expectTick: number | undefined }
  /** Changes nothing. Refused (precondition_failed) when the scope changed after this tick, or nobody knows any more. */
  | { kind: 'scope.requireUnchanged'; pillarenv: string; since: number }
  /** Purges the values of all versions, also of a deleted pillar; a pillar that exists keeps the version it is now. */
  | { kind: 'pillar.purgeHistory'; pid: string }
  | CollectionPut
  /** Refused (conflict) while it has children, members or pillars. */
  | { kind: 'collection.delete'; id: string; expect: Expect }
  | { kind: 'master.put'; expect: Expect; record: Omit<MasterRecord, 'tick'> }
  /** Refused (conflict) while it has minions or inventories. */
  | { kind: 'master.delete'; id: string; expect: Expect }
  /**
   * Its memberships by name; those by rule stay. The master and every collection must exist (unknown_master,
   * not_found). Its inventory becomes an accepted one. With `maxOfMaster` a new one is refused (forbidden) when the master has so many.
   */
  | { kind: 'minion.put'; expect: Expect; record: MinionDraft; maxOfMaster?: number }
  /** Refused (conflict) while it has pillars. Its inventory goes with it. */
  | { kind: 'minion.delete'; master: string; id: string; expect: Expect }
  | { kind: 'token.put'; expect: Expect; record: Omit<ApiTokenRecord, 'tick'> }
  | { kind: 'token.delete'; id: string; expect: Expect }
  /** Changes nothing. Refused (conflict) unless this is a token with the role admin that has not expired at `atMs`. */
  | { kind: 'token.requireAdmin'; id: string }
  | RuleMutation
  | TaskMutation
  | ServiceMutation
  | InventoryMutation;

/** An event to be published, without what only the transaction knows (clock, position in the batch). */
export type OutboxDraft = { type: string; subject: string; data: Value };

export type OutboxRow = OutboxDraft & {
  tick: number;
  /** Position within the tick, from 0. */
  index: number;
  /** Milliseconds since the epoch, of the write. */
  timeMs: number;
};

export type IdempotencyDraft = {
  /** Principal and route and key, already joined by the caller. */
  scope: string;
  /** HMAC of the request body. */
  fingerprint: string;
  /** The answer to give again; the tick of the write is put in for `ticks` readers by the caller afterwards. */
  response: Value;
  expiresAtMs: number;
};

export type WriteBatch = {
  mutations: readonly Mutation[];
  events: readonly OutboxDraft[];
  /** User sub or service name; becomes createdBy/updatedBy. */
  by: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  idempotency?: IdempotencyDraft;
};

/**
 * A written batch, or the answer of an earlier write with the same idempotency scope and fingerprint.
 * The same scope with another fingerprint throws `idempotency_mismatch`.
 */
export type WriteResult =
  | { replayed: false; clock: Clock }
  | { replayed: true; clock: Clock; response: Value; tick: number };

/** What a cached piece of the estate is filed under; the merger drops exactly these when they change. */
export type ChangeKey =
  | `scope:${string}`
  | 'collections'
  | `minion:${string}/${string}`
  | `master:${string}`
  | `task:${string}`;

export type EstateQuery = {
  /** Changes after this tick are reported; undefined: all is unknown. */
  since: Clock | undefined;
  /** pillarenvs whose pillars are wanted whole. */
  scopes: readonly string[];
  collections: boolean;
  masters: readonly string[];
  minions: readonly { master: string; id: string }[];
  tasks?: readonly string[];
};

/** One consistent snapshot: the clock, what changed since, and the rows asked for, all from the same moment. */
export type EstateSnapshot = {
  clock: Clock;
  /** `all`: too much changed, the list was trimmed, or the incarnation is another. */
  changed: readonly ChangeKey[] | 'all';
  scopes: ReadonlyMap<string, readonly PillarRecord[]>;
  collections: readonly CollectionRecord[] | undefined;
  masters: ReadonlyMap<string, MasterRecord | undefined>;
  /** By `${master}/${id}`. */
  minions: ReadonlyMap<string, MinionRecord | undefined>;
  tasks: ReadonlyMap<string, TaskRecord | undefined>;
};

export type PillarFilter = {
  tgtTypes: readonly TgtType[];
  tgtId?: string;
  pillarenv?: string;
  name?: string;
  /** Those of the minions of this master. */
  master?: string;
};

export type MinionFilter = {
  master?: string;
  /** Direct members of any of these. */
  collections?: readonly string[];
};

/** A page; `next` goes into the following call. Order is by pid, so rows that change do not move. */
export type Page<T> = { rows: readonly T[]; next: string | undefined };

export type Lease = { name: string; holder: string; fence: number; expiresAtMs: number };

/** Read only: all that pillar-merger gets. */
export interface EstateReader extends AsyncDisposable {
  /** Reads one snapshot. Throws `unavailable` when the store cannot answer. */
  snapshot(query: EstateQuery): Promise<EstateSnapshot>;
  /** Every master: the mergers read one Redis stream for each. */
  listMasters(): Promise<readonly MasterRecord[]>;
  /** Rejects with `unavailable` when the store cannot answer. */
  ping(): Promise<void>;
}

/** All of it: only pillar-api holds one. */
export interface EstateStore
  extends EstateReader,
    TaskReads,
    BulkStore,
    HistoryStore,
    InventoryReads,
    ServiceReads,
    KeyStore {
  /** One transaction, one tick. Refused whole: already_exists, precondition_failed, not_found, conflict, bad_request … */
  write(batch: WriteBatch): Promise<WriteResult>;
  getPillar(pid: string): Promise<PillarRecord | undefined>;
  findPillar(
    tgtType: TgtType,
    tgtId: string,
    name: string,
    pillarenv: string,
  ): Promise<PillarRecord | undefined>;
  listPillars(
    filter: PillarFilter,
    page: { after: string | undefined; limit: number },
  ): Promise<Page<PillarRecord>>;
  getCollection(id: string): Promise<CollectionRecord | undefined>;
  listCollections(): Promise<readonly CollectionRecord[]>;
  /** Root first, the collection itself last (seed 000, get_ancestors_ids include_self); empty when unknown. */
  getBranch(id: string): Promise<readonly CollectionRecord[]>;
  getMaster(id: string): Promise<MasterRecord | undefined>;
  getMinion(master: string, id: string): Promise<MinionRecord | undefined>;
  listMinions(
    filter: MinionFilter,
    page: { after: string | undefined; limit: number },
  ): Promise<Page<MinionRecord>>;
  getToken(id: string): Promise<ApiTokenRecord | undefined>;
  listTokens(): Promise<readonly ApiTokenRecord[]>;
  /**
   * Notes when a token was used last, never an earlier time than is noted. No change of the estate: the clock and the
   * token's tick stay. Of a token that is gone nothing is noted.
   */
  noteTokenUse(id: string, atMs: number): Promise<void>;
  findIdempotent(scope: string): Promise<{ fingerprint: string; response: Value; tick: number } | undefined>;
  /** Oldest first, at most `limit`. */
  readOutbox(limit: number): Promise<readonly OutboxRow[]>;
  /** Drops rows up to and with this position, only while the fence is the lease's newest. */
  dropOutbox(upTo: { tick: number; index: number }, lease: { name: string; fence: number }): Promise<void>;
  /**
   * Takes or renews a lease for ttlMs; undefined while another holder has it, which is never for longer than ttlMs from
   * the first try on, whatever the clock says. A new holder gets a higher fence.
   */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  releaseLease(name: string, holder: string): Promise<void>;
}
