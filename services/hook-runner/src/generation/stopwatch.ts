/** Steps of a generation in their order, under the names that the seed's timing summary has for them where it has any (seed 002). */
export const STEPS = {
  startHooks: 'Run pre-gen scripts hooks',
  findTouched: 'Fetch all information',
  compile: 'Build target configuration',
  compare: 'Compare node configurations',
  write: 'Write node configurations',
  readyHooks: 'Run node ready hooks',
  swap: 'Swap node configurations',
  finishedHooks: 'Run node finished hooks',
  remove: 'Remove old node configurations',
  tell: 'Save generation information',
  endHooks: 'Run post generation hooks',
} as const;
export type Step = (typeof STEPS)[keyof typeof STEPS];
export type Stopwatch = ReturnType<typeof createStopwatch>;

/**
 * How long the steps of a generation took (seed 002, timing summary): all of them, those that had nothing to do too. A step that
 * is done several times adds up, at the same time too, so a step may take longer than the whole.
 */
export function createStopwatch() {
  const steps = new Map<Step, number>(Object.values(STEPS).map((step) => [step, 0]));
  const beganMs = performance.now();
  const add = (step: Step, startedMs: number) =>
    steps.set(step, (steps.get(step) ?? 0) + performance.now() - startedMs);
  return {
    async time<T>(step: Step, work: () => Promise<T>): Promise<T> {
      const startedMs = performance.now();
      try {
        return await work();
      } finally {
        add(step, startedMs);
      }
    },
    timeSync<T>(step: Step, work: () => T): T {
      const startedMs = performance.now();
      try {
        return work();
      } finally {
        add(step, startedMs);
      }
    },
    /** Milliseconds of each, and of the whole until now. */
    steps: () => ({ steps: [...steps], totalMs: performance.now() - beganMs }),
  };
}
