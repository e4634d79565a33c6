export type Failure = { name: string; error: unknown };

export type Skip = { name: string; reason: string };

export type FileResult = {
  file: string;
  passed: number;
  failures: readonly Failure[];
  /** Tests skipped, and those marked as still to be done. */
  skips: readonly Skip[];
  /** What the file wrote, both streams together. */
  output: string;
  durationMs: number;
};

export type Tally = { results: FileResult[] };

export function emptyTally(): Tally {
  return { results: [] };
}

export function addResult(tally: Tally, result: FileResult): void {
  tally.results.push(result);
}

export function passedCount(tally: Tally): number {
  return tally.results.reduce((sum, { passed }) => sum + passed, 0);
}

/** Where everything is required, a skipped test has failed. */
export function failedCount(tally: Tally, requireAll: boolean): number {
  const count = ({ failures, skips }: FileResult) => failures.length + (requireAll ? skips.length : 0);
  return tally.results.reduce((sum, result) => sum + count(result), 0);
}
