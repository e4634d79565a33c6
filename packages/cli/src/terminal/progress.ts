import { escapeLine } from './escape.ts';
import { clip } from './table.ts';

/** One line about long work, on standard error, and only where a person sees it. */
export type Progress = Disposable & { say(text: string): void };

const EVERY_MS = 100;
const CLEAR = '\r\u001b[K';

export function createProgress(): Progress {
  const shown = process.stderr.isTTY === true;
  let last = Number.NEGATIVE_INFINITY;
  let dirty = false;
  return {
    say(text) {
      const now = performance.now();
      if (!shown || now - last < EVERY_MS) return;
      last = now;
      dirty = true;
      process.stderr.write(CLEAR + clip(escapeLine(text), (process.stderr.columns ?? 80) - 1));
    },
    [Symbol.dispose]() {
      if (dirty) process.stderr.write(CLEAR);
    },
  };
}
