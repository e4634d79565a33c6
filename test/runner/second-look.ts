import type { FileResult, Tally } from './tally.ts';

/** More failed files than this are no accident of a busy machine. */
const MAX_FILES = 10;

/**
 * Runs what has failed once more, one file at a time. Tests here start real servers, beside other tests on few cores: a failure
 * that does not come again with nothing beside it is told, by name, and not counted. One that comes again is.
 * @param run runs a file anew
 * @returns the results that were replaced, as they were at first
 */
export async function takeSecondLook(
  tally: Tally,
  run: (file: string) => Promise<FileResult>,
): Promise<FileResult[]> {
  const failed = tally.results.filter(({ failures }) => failures.length > 0);
  if (failed.length > MAX_FILES) return [];
  const replaced: FileResult[] = [];
  for (const first of failed) {
    const second = await run(first.file);
    tally.results[tally.results.indexOf(first)] = second;
    if (second.failures.length === 0) replaced.push(first);
  }
  return replaced;
}
