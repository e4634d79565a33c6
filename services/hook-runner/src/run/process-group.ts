import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;

/** Sends a signal to a whole process group, 0 to ask only. @returns false when nobody is left in it */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-groupId, signal);
    return true;
  } catch (thrown) {
    // EPERM: somebody is there who is no longer ours.
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Ends a process group: TERM, then KILL for whoever is left after the grace. The group is that of a hook whose end has not
 * been seen yet, so that its number cannot be another's.
 */
export async function endGroup(groupId: number, graceMs: number): Promise<void> {
  if (!signalGroup(groupId, 'SIGTERM')) return;
  const deadline = performance.now() + graceMs;
  while (performance.now() < deadline) {
    await sleep(LOOK_EVERY_MS);
    if (!signalGroup(groupId, 0)) return;
  }
  signalGroup(groupId, 'SIGKILL');
}
