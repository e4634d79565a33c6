import path from 'node:path';
import { type EventData, run } from 'node:test';
import type { Failure, FileResult, Skip } from './tally.ts';

/** One test may take this long. */
const testLimitMs = 300_000;
/** A file in which nothing begins or ends for longer than any test may take is stuck. */
const silenceMs = testLimitMs + 30_000;

const preload = new URL('../../scripts/bootstrap/end-with-parent.mjs', import.meta.url).href;

type TestEvent = { name: string; nesting: number };

/** The events that count; there are others. */
type RunEvent =
  | { type: 'test:start'; data: EventData.TestStart }
  | { type: 'test:pass'; data: EventData.TestPass }
  | { type: 'test:fail'; data: EventData.TestFail }
  | { type: 'test:diagnostic'; data: EventData.TestDiagnostic }
  | { type: 'test:stdout'; data: EventData.TestStdout }
  | { type: 'test:stderr'; data: EventData.TestStderr }
  | { type: 'test:summary'; data: EventData.TestSummary };

/**
 * Runs one test file in a process of its own. Never throws: a file that crashes, hangs, ends early or holds no test
 * has a failure that says so.
 */
export async function runFile(root: string, file: string, stop: AbortSignal): Promise<FileResult> {
  const absolute = path.join(root, file);
  const collector = createCollector(absolute);
  const start = Date.now();
  const stuck = new AbortController();
  const silence = setTimeout(() => stuck.abort(), silenceMs);
  try {
    const events = run({
      files: [absolute],
      cwd: root,
      isolation: 'process',
      signal: AbortSignal.any([stop, stuck.signal]),
      execArgv: [
        `--test-timeout=${testLimitMs}`,
        '--disable-warning=ExperimentalWarning',
        `--import=${preload}`,
      ],
    });
    for await (const event of events) {
      silence.refresh();
      collector.take(event);
    }
  } catch (error) {
    collector.fail('the test runner', error);
  } finally {
    clearTimeout(silence);
  }
  if (stuck.signal.aborted) collector.fail('the file', `nothing happened for ${silenceMs / 1000} s`);
  return { file, ...collector.result(), durationMs: Date.now() - start };
}

/** Sums up the events of one file. */
function createCollector(file: string) {
  const failures: Failure[] = [];
  const skips: Skip[] = [];
  const names: string[] = [];
  let passed = 0;
  let output = '';
  let ended = false;
  const fullName = ({ name, nesting }: TestEvent) => {
    // The runner reports what is wrong with a whole file under the file's own name.
    if (name === file) return 'the file';
    return [...names.slice(0, nesting), name].join(' > ');
  };
  const take = (event: RunEvent) => {
    switch (event.type) {
      case 'test:start':
        names[event.data.nesting] = event.data.name;
        break;
      case 'test:stdout':
      case 'test:stderr':
        output += event.data.message;
        break;
      case 'test:summary':
        // One comes from the file's own process, when it has come to its end; the runner's own names no file.
        if (event.data.file) ended = true;
        break;
      case 'test:diagnostic':
        // Such as an error thrown after its test had ended: the file fails, and only this says why.
        if (event.data.file) output += `${event.data.message}\n`;
        break;
      case 'test:pass':
        takePass(event.data);
        break;
      case 'test:fail':
        // Whoever only contains a failure is not counted beside it.
        if (failureType(event.data.details.error) === 'subtestsFailed') break;
        failures.push({ name: fullName(event.data), error: event.data.details.error });
        break;
    }
  };
  const takePass = (data: EventData.TestPass) => {
    if (data.name === file || data.details.type === 'suite') return;
    if (data.skip === undefined && data.todo === undefined) passed += 1;
    else skips.push({ name: fullName(data), reason: String(data.skip ?? `to do ${data.todo}`) });
  };
  const result = () => {
    const none = passed + failures.length + skips.length === 0;
    if (failures.length === 0 && (!ended || none)) {
      failures.push({
        name: 'the file',
        error: ended ? 'it holds no test' : 'it ended before its tests did',
      });
    }
    return { passed, failures, skips, output };
  };
  return { take, result, fail: (name: string, error: unknown) => void failures.push({ name, error }) };
}

function failureType(error: unknown): unknown {
  return error instanceof Error && 'failureType' in error ? error.failureType : undefined;
}
