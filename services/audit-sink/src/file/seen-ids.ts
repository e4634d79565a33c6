import type { Delivery } from '@colonnade/bus';

/** Tells a message that the stream has stored a second time. */
export type SeenIds = {
  /** Whether a message of the same id has come with a lower place in the stream. Remembers this one if not. */
  isRepeated(delivery: Pick<Delivery, 'seq' | 'msgId'>): boolean;
};

/** More than all publishers together send between a try whose acknowledgement was lost and the next one; some 15 MB. */
const MAX_IDS = 100_000;

/**
 * The stream drops a message id it has had within two minutes, but after a restart it knows only the ids of what it still holds: not of
 * what the file had taken already. Whoever sends again what was stored before the restart would then be stored twice.
 * @param limit ids remembered at most; at least the newest half of them
 */
export function createSeenIds(limit = MAX_IDS): SeenIds {
  // In two halves, of which the older one goes as a whole: to take the oldest out one by one costs as much as the rest of a record.
  let newer = new Map<string, number>();
  let older = newer;
  return {
    isRepeated({ seq, msgId }) {
      if (msgId === undefined) return false;
      const first = newer.get(msgId) ?? older.get(msgId);
      // The same message again: what became of it the first time is told by its sequence.
      if (first !== undefined) return first !== seq;
      if (newer.size >= limit / 2) {
        older = newer;
        newer = new Map();
      }
      newer.set(msgId, seq);
      return false;
    },
  };
}
