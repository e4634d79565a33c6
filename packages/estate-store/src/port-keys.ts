import type { Value } from '@colonnade/value';
import type { PillarRecord } from './port.ts';

/** The part of the port that is about the keys of sealed values: how many each has sealed, and rewrapping them. */

/** A stored value under some key, with what its AAD is made of. */
export type SealedRow = Pick<PillarRecord, 'pid' | 'tgtType' | 'tgtId' | 'pillarenv' | 'name' | 'value'>;

/** How far a key's values are rewrapped; kept with the estate, so that any process can tell and go on. */
export type RewrapProgress = {
  /** The key, such as `pillars`. */
  key: string;
  /** Under which version the values are brought. */
  kid: string;
  by: string;
  /** Milliseconds since the epoch. */
  startedAtMs: number;
  updatedAtMs: number;
  /** Undefined while there is something left to do. */
  finishedAtMs: number | undefined;
  /** Values that were rewrapped, and those that do not open in their place, in this run. */
  rewrapped: number;
  failed: number;
  /** Values under older versions when it began, or when it ended. */
  left: number;
};

export interface KeyReads {
  /** How many values each key has sealed: pillars, all their versions, and what imports have staged. By kid. */
  countKeyUse(): Promise<ReadonlyMap<string, number>>;
  /**
   * Values that this key has sealed, of pillars and then of versions, in a fixed order; each value of a pillar once where
   * versions share it. At most `limit`, and less than SEALED_BYTES of them unless one alone is larger.
   */
  listSealed(
    kid: string,
    page: { after: string | undefined; limit: number },
  ): Promise<{ rows: readonly SealedRow[]; next: string | undefined }>;
  /** Kids that no write may bring in. */
  readClosedKids(): Promise<readonly string[]>;
  readRewrap(): Promise<RewrapProgress | undefined>;
}

export interface KeyWrites {
  /**
   * Puts another wrapping of the same value in the place of one, in a pillar and in all its versions, where it is still there exactly
   * as given. No change of the estate: no tick, no version, no event, and readers keep what they have.
   * @returns how many of the swaps found their value
   */
  swapSealed(swaps: readonly { pid: string; from: Value; to: Value }[]): Promise<number>;
  /**
   * Lets no write bring in a value under these keys, from this commit on; under others it is free again.
   * @throws ColonnadeError `conflict` while a value is stored under one that was not closed before: nothing is changed
   */
  closeKids(kids: readonly string[]): Promise<void>;
  writeRewrap(progress: RewrapProgress): Promise<void>;
}

/** Stored size of one page of `listSealed`, roughly. */
export const SEALED_BYTES = 1024 * 1024;

export interface KeyStore extends KeyReads, KeyWrites {}
