import { setTimeout as delay } from 'node:timers/promises';
import type { RunningServer } from './servers/index.ts';
import type { Report } from './servers/tools.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A process that ran this long had started well: its next end is a new story. */
const SETTLED_MS = 60_000;

/**
 * Starts a part again whenever it ends without being asked to, at first at once, then ever more slowly, and says so.
 * Ends with the signal.
 */
export async function keepRunning(
  name: string,
  server: RunningServer,
  report: Report,
  stopped: AbortSignal,
): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS;
  while (!stopped.aborted) {
    const since = performance.now();
    const exit = await server.endedByItself();
    if (stopped.aborted) return;
    if (performance.now() - since > SETTLED_MS) pauseMs = FIRST_PAUSE_MS;
    report(
      `${name} ended by itself (${exit.signal ?? `exit code ${exit.code}`}); starting it again. Its log: ${server.logFile}`,
    );
    for (;;) {
      await delay(pauseMs, undefined, { signal: stopped }).catch(() => {});
      if (stopped.aborted) return;
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      const fault = await server.restart().catch((error: Error) => error);
      if (!(fault instanceof Error)) break;
      report(`${name} does not start: ${fault.message}`);
    }
    report(`${name} runs again`);
  }
}
