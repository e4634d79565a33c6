// `npm test [-- files or folders]`: every test on real servers, and one line at the end that says how it went.
import { writeSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { prepareServers } from './runner/prepare-servers.ts';
import { needsKube, prepareKube, prepareSlow } from './runner/prepare-slow.ts';
import { printFile, printShaky, printSummary } from './runner/print.ts';
import { runFile } from './runner/run-file.ts';
import { takeSecondLook } from './runner/second-look.ts';
import { selectFiles } from './runner/select-files.ts';
import { addResult, emptyTally, failedCount, passedCount } from './runner/tally.ts';

/** The machine has few cores, and a test file starts servers of its own. */
const concurrency = 2;

const root = path.dirname(import.meta.dirname);
const requireAll = process.env.COLONNADE_REQUIRE_ALL === '1';
const tally = emptyTally();
const stopping = new AbortController();
let crashed = 0;

// Whatever happens, the last line counts it; a run in which nothing ran has failed.
process.on('exit', () => {
  const failed = crashed + failedCount(tally, requireAll);
  const nothing = passedCount(tally) + failed === 0 ? 1 : 0;
  if (failed + nothing > 0) process.exitCode = 1;
  writeSync(1, `${passedCount(tally)} passed, ${failed + nothing} failed\n`);
});
process.on('uncaughtException', (error) => {
  console.error(error);
  crashed += 1;
  process.exit(1);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    console.error(`stopped by ${signal}`);
    crashed += 1;
    stopping.abort();
    // A second one does not wait for the files that are running.
    process.once(signal, () => process.exit(1));
  });
}

const files = await selectFiles(root, process.argv.slice(2));
const report = (text: string) => console.error(`colonnade: ${text}`);
await prepareServers(report);
void prepareSlow(root, files, report);
// The slowest thing of all; what needs it comes last, and waits.
const kubeReady = requireAll && files.some(needsKube) ? prepareKube(report) : Promise.resolve();
const queue = [...files.filter((f) => !needsKube(f)), ...files.filter(needsKube)];
const start = Date.now();

async function work(): Promise<void> {
  for (let file = queue.shift(); file && !stopping.signal.aborted; file = queue.shift()) {
    if (needsKube(file)) await kubeReady;
    const result = await runFile(root, file, stopping.signal);
    addResult(tally, result);
    printFile(result, `${tally.results.length}/${files.length}`, requireAll);
  }
}

await Promise.all(Array.from({ length: concurrency }, work));
const again = stopping.signal.aborted ? emptyTally() : tally;
const shaky = await takeSecondLook(again, async (file) => {
  const result = await runFile(root, file, stopping.signal);
  printFile(result, 'again, alone', requireAll);
  return result;
});
printSummary(tally, requireAll, Date.now() - start);
printShaky(shaky);
