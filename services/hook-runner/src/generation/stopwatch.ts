/** How long the steps of a generation took; a step that is done several times adds up (seed 002, timing summary). */
export function createStopwatch() {
  const steps = new Map<string, number>();
  const beganMs = performance.now();
  return {
    async time<T>(step: string, work: () => Promise<T>): Promise<T> {
      const startedMs = performance.now();
      try {
        return await work();
      } finally {
        steps.set(step, (steps.get(step) ?? 0) + performance.now() - startedMs);
      }
    },
    /** Milliseconds of each, and of the whole until now. */
    steps: () => ({ steps: [...steps], totalMs: performance.now() - beganMs }),
  };
}
