import { type History, type Merge, type ValueId, violate } from '../history.ts';
import { startOf, type Truth, UNKNOWN_SECRET, type Version } from './truth.ts';

/** Every merged pillar is the estate of one moment, whole, and that moment is not older than what was acknowledged. */
export function checkMerges(history: History, truth: Truth): void {
  for (const merge of history.merges) checkMoment(history, merge, truth);
  checkFreshness(history);
}

function checkMoment(history: History, merge: Merge, truth: Truth): void {
  for (const [key, seen] of merge.seen) {
    const was = stateAt(key, truth.get(key) ?? [], merge.clock);
    if (was === seen || (was === UNKNOWN_SECRET && seen !== '')) continue;
    const at = `at clock ${merge.clock}, ${(merge.call / 1e6).toFixed(3)} s`;
    violate(
      history,
      'stale or partial pillar',
      `${merge.minion} ${at}: ${key} was "${was}", given "${seen}"`,
    );
  }
}

function stateAt(key: string, versions: readonly Version[], tick: number): ValueId {
  let state = startOf(key);
  for (const version of versions) {
    if (version.tick > tick) break;
    state = version.id;
  }
  return state;
}

/** A merge that began after a write's answer has a clock no older than that write's. */
function checkFreshness(history: History): void {
  const writes = history.operations
    .filter(({ kind, outcome, tick }) => kind !== 'read' && outcome === 'ok' && tick !== undefined)
    .sort((a, b) => a.return - b.return);
  let [at, newest] = [0, 0];
  for (const merge of [...history.merges].sort((a, b) => a.call - b.call)) {
    for (; at < writes.length && (writes[at]?.return ?? 0) < merge.call; at++) {
      newest = Math.max(newest, writes[at]?.tick ?? 0);
    }
    if (merge.clock >= newest) continue;
    violate(
      history,
      'stale pillar',
      `${merge.minion}: clock ${merge.clock} after tick ${newest} was acknowledged`,
    );
  }
}
