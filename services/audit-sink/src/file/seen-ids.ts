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
 * @param limit ids remembered, the newest
 */
export function createSeenIds(limit = MAX_IDS): SeenIds {
  const seqOf = new Map<string, number>();
  return {
    isRepeated({ seq, msgId }) {
      if (msgId === undefined) return false;
      const first = seqOf.get(msgId);
      // The same message again: what became of it the first time is told by its sequence.
      if (first !== undefined) return first !== seq;
      seqOf.set(msgId, seq);
      if (seqOf.size > limit) {
        const [oldest] = seqOf.keys();
        if (oldest !== undefined) seqOf.delete(oldest);
      }
      return false;
    },
  };
}
