import type { Clock, PillarRecord } from './port.ts';

/** What was: the part of the port that is about versions. */

/** `move`: another name, target or both. `restore`: what an earlier version says, also of a pillar that was deleted. */
export type VersionOp = 'create' | 'update' | 'delete' | 'move' | 'restore';

/** Of a purged version everything is kept but its value, which is null. */
export type PillarVersion = PillarRecord & { op: VersionOp; purged: boolean };

/** A version without its value. */
export type VersionMark = Pick<
  PillarVersion,
  'pid' | 'tick' | 'op' | 'purged' | 'tgtType' | 'tgtId' | 'pillarenv' | 'name' | 'isSecret' | 'updatedAtMs'
>;

/** The newest deletion whose pillar is forgotten whole: before it a scope may have held what nobody knows of. */
export type HistoryFloor = { tick: number; atMs: number };

/** Every version of every pillar that ever stood in a scope, of one moment. */
export type ScopeHistory = {
  clock: Clock;
  historyFloor: HistoryFloor;
  /** By pid and tick; `undefined`: there are more than were asked for. */
  marks: readonly VersionMark[] | undefined;
};

/** A part of a scope's pillars as they were and as they are, of one moment. */
export type ScopePage = {
  clock: Clock;
  historyFloor: HistoryFloor;
  /** By pid and tick; of each pillar its first version, the last one up to the clock asked for, and the newest. */
  marks: readonly VersionMark[];
  /** The last pid looked at, when there may be more. */
  next: string | undefined;
};

/** What a retention keeps of each pillar; the version it is now is always kept. */
export type Retention = {
  /** Newest versions, the one it is now among them; undefined: all. */
  keep: number | undefined;
  /** Versions that were replaced before this time go, and pillars deleted before it; undefined: none. Epoch ms. */
  beforeMs: number | undefined;
};

export interface HistoryStore {
  /** Oldest first; with a page those after a tick, at most `limit`. */
  listVersions(pid: string, page?: { after: number; limit: number }): Promise<readonly PillarVersion[]>;
  /** One version of a pillar; without a tick its newest, which says of a deleted one how it was deleted. */
  getVersion(pid: string, tick?: number): Promise<PillarVersion | undefined>;
  /** At most `limit` versions, of these pillars only when they are named. */
  readScopeHistory(
    pillarenv: string,
    options: { pids: readonly string[] | undefined; limit: number },
  ): Promise<ScopeHistory>;
  /** As readScopeHistory, for a scope of any size: at most `limit` pillars, those after a pid in their order. */
  readScopePage(
    pillarenv: string,
    options: { pids: readonly string[] | undefined; at: number; after: string | undefined; limit: number },
  ): Promise<ScopePage>;
  /** The first tick that changed a pillar of readScopeHistory after a time (epoch ms). */
  findScopeChange(
    pillarenv: string,
    options: { pids: readonly string[] | undefined; afterMs: number },
  ): Promise<{ clock: Clock; tick: number | undefined }>;
  /**
   * Removes what the retention does not keep, of pillars after a pid in their order, a small batch at a time; the oldest
   * first, so that what is left of a history has no gaps. It is no change of the estate, and makes no tick.
   */
  trimHistory(
    retention: Retention,
    page: { after: string | undefined },
  ): Promise<{ removed: number; next: string | undefined }>;
}
