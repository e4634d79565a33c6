import { searchFolder } from '../../support/search-traces.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type History, violate } from '../history.ts';
import type { System } from '../system.ts';
import { checkAuditLog } from './audit-log.ts';
import { checkLinearizability } from './linearizability.ts';
import { checkMerges } from './merges.ts';
import { readEvents, type StreamedEvent } from './streams.ts';
import { readTruth, type Truth } from './truth.ts';
import { checkEvents, checkWrites } from './writes.ts';

const RELAY_LIMIT_MS = 30_000;

/**
 * Holds a run against what Colonnade promises: what was acknowledged is there, what was shown was true, what must not
 * be written down is nowhere. What is wrong goes into the history's violations.
 * @returns how much of what was looked at, and what the estate said of itself
 */
export async function checkRun(
  system: System,
  history: History,
  { canary, report }: { canary: string; report: (text: string) => void },
): Promise<{ checked: Record<string, number>; truth: Truth; events: StreamedEvent[] }> {
  const { events, truth } = await readAll(system, history);
  checkWrites(history, truth);
  checkMerges(history, truth);
  const checked: Record<string, number> = {
    versions: [...truth.values()].flat().length,
    events: checkEvents(history, truth, events),
  };
  report(`${checked.versions} versions and ${checked.events} events are checked; the audit log`);
  checked.records = await checkAuditLog(history, system.witness, system.stack.auditLog);
  report(`${checked.records} records are checked; linearizability`);
  checked.registers = await checkLinearizability(history, truth);
  checked.files = await checkLeaks(history, system.folders, canary);
  return { checked, truth, events };
}

/**
 * The events and the estate, once the relay has come to its last write: one that nobody was answered may be newer than every
 * acknowledged one.
 */
async function readAll(system: System, history: History): Promise<{ events: StreamedEvent[]; truth: Truth }> {
  const acknowledged = history.operations.filter((o) => o.kind !== 'read').map((o) => o.tick ?? 0);
  for (let last = Math.max(0, ...acknowledged); ; ) {
    const events = await readEventsUpTo(last, system, history);
    const truth = await readTruth(system.directApi, history, events);
    const newest = Math.max(last, ...[...truth.values()].flat().map(({ tick }) => tick));
    if (newest === last || newest <= (events.at(-1)?.tick ?? 0)) return { events, truth };
    last = newest;
  }
}

async function readEventsUpTo(last: number, system: System, history: History): Promise<StreamedEvent[]> {
  let events: StreamedEvent[] = [];
  const complete = async () => {
    events = await readEvents(system.witness);
    return (events.at(-1)?.tick ?? 0) >= last;
  };
  await waitFor('the last event', complete, { limitMs: RELAY_LIMIT_MS, everyMs: 250 }).catch((error: Error) =>
    violate(history, 'lost event', error.message),
  );
  return events;
}

/** Every file below these folders. @returns how many were looked at */
export async function checkLeaks(
  history: History,
  folders: readonly string[],
  canary: string,
): Promise<number> {
  let total = 0;
  for (const folder of folders) {
    const { files, traces } = await searchFolder(folder, [canary]);
    total += files;
    for (const trace of traces) violate(history, 'leak', trace);
  }
  return total;
}
