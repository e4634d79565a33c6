// Who was started by a process that is gone goes too: npm, and the shell between, do not pass every signal on.
import process from 'node:process';

/** As it was when we started: it may end while we are still installing. */
const parent = process.ppid;

/**
 * Calls `act` once, within a second of the end of the process that started this one.
 * @param {() => void} act
 */
export function whenParentEnds(act) {
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    act();
  }, 1_000);
  timer.unref();
}
