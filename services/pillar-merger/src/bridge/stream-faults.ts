import type { StreamFault } from './functions.ts';
import type { Refusal } from './handle-entry.ts';

const RECORD_EVERY_MS = 60_000;

/**
 * Puts on record that a master writes past the bridge's function: one record at once, and one a minute with the sum
 * while it goes on. What was dropped after the last record is in the log and in the metrics.
 */
export function createStreamFaultRecorder(
  recordRefusal: (refusal: Refusal) => Promise<void>,
  onFault: (thrown: unknown) => void,
  now: () => number = () => performance.now(),
): (fault: StreamFault) => void {
  const last = new Map<string, { atMs: number; dropped: number }>();
  return ({ master, kind, dropped }) => {
    const known = last.get(master) ?? { atMs: Number.NEGATIVE_INFINITY, dropped: 0 };
    known.dropped += dropped;
    last.set(master, known);
    if (now() - known.atMs < RECORD_EVERY_MS) return;
    const reason = `the request stream was written to past its limits (${kind}); entries dropped: ${known.dropped}`;
    Object.assign(known, { atMs: now(), dropped: 0 });
    const refusal = {
      code: 'overloaded',
      reason,
      master,
      minionId: undefined,
      pillarenv: undefined,
    } as const;
    recordRefusal(refusal).catch(onFault);
  };
}
