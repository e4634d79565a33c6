import { inspect } from 'node:util';
import type { FileResult, Tally } from './tally.ts';

/** How much of a failed file's own output is shown. */
const outputLines = 200;

/** One line for a file that has ended; for one that failed, each failure in full and what the file wrote. */
export function printFile(result: FileResult, progress: string, requireAll: boolean): void {
  const { file, passed, failures, skips, output, durationMs } = result;
  const failed = failures.length > 0 || (requireAll && skips.length > 0);
  const parts = [`${passed} passed`];
  if (failures.length > 0) parts.push(`${failures.length} failed`);
  if (skips.length > 0) parts.push(`${skips.length} skipped`);
  parts.push(`${(durationMs / 1000).toFixed(1)} s`);
  console.log(`${failed ? 'FAIL' : 'ok  '} [${progress}] ${file} (${parts.join(', ')})`);
  for (const { name, error } of failures) {
    console.log(`  failed: ${name}`);
    console.log(indent(describeError(error)));
  }
  if (failures.length > 0 && output.trim()) {
    console.log(`  output of ${file}:`);
    console.log(indent(output.trim().split('\n').slice(-outputLines).join('\n')));
  }
}

/** What is worth knowing after the last file: the failures and skips again, by name only. */
export function printSummary(tally: Tally, requireAll: boolean, durationMs: number): void {
  console.log(`\n${tally.results.length} files in ${(durationMs / 1000).toFixed(1)} s`);
  for (const { file, failures, skips } of tally.results) {
    for (const { name, reason } of skips) {
      console.log(`${requireAll ? 'skipped, but required' : 'skipped'}: ${file}: ${name}: ${reason}`);
    }
    for (const { name } of failures) console.log(`failed: ${file}: ${name}`);
  }
}

/** Failures that did not come again when their file ran alone: to be looked into, not counted. */
export function printShaky(results: readonly FileResult[]): void {
  for (const { file, failures } of results)
    for (const { name } of failures) console.log(`shaky: ${file}: ${name}: failed at first, passed alone`);
}

/** The runner wraps what a test threw, and says little of a process that ended; a person wants to see both. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : inspect(error, { depth: 6 });
  if ('exitCode' in error && 'signal' in error) {
    return `its process ended with ${error.signal ?? `exit code ${error.exitCode}`}`;
  }
  return inspect('failureType' in error ? (error.cause ?? error) : error, { depth: 6 });
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}
