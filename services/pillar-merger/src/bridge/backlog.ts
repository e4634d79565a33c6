/** Tells whether requests wait longer than they should before a merger takes them. */
export type Backlog = {
  /** How old an entry was when it was read, milliseconds. */
  noteAge(ageMs: number): void;
  /** The oldest of the last seconds, milliseconds. */
  oldestMs(): number;
};

const WINDOW_MS = 5000;

/** @param now milliseconds of a clock that never goes back */
export function createBacklog(now: () => number = () => performance.now()): Backlog {
  let window = { startMs: now(), oldestMs: 0 };
  let before = 0;
  const roll = (): void => {
    const passed = now() - window.startMs;
    if (passed < WINDOW_MS) return;
    before = passed < 2 * WINDOW_MS ? window.oldestMs : 0;
    window = { startMs: now(), oldestMs: 0 };
  };
  return {
    noteAge(ageMs) {
      roll();
      window.oldestMs = Math.max(window.oldestMs, ageMs);
    },
    oldestMs() {
      roll();
      return Math.max(before, window.oldestMs);
    },
  };
}
