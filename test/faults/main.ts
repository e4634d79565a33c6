// `npm run faults -- --seed N`: what Colonnade promises, held against a run full of faults.
import { randomInt } from 'node:crypto';
import path from 'node:path';
import process from 'node:process';
import { ColonnadeError } from '@colonnade/contracts';
import { readFaultOptions, usage } from './options.ts';
import { type Outcome, runFaults } from './run.ts';

/** So many violations are told in full. */
const TOLD = 40;

function describe({ faults, faultsByKind, operations, checked, refusals, ...rest }: Outcome): string {
  const list = (record: Record<string, number>) =>
    Object.entries(record)
      .map(([name, n]) => `${n} ${name}`)
      .join(', ');
  const { violations, seconds, longestRecoveryMs } = rest;
  return [
    `faults      ${faults}: ${list(faultsByKind)}`,
    `operations  ${list(operations)}`,
    `checked     ${list(checked)}`,
    `errors      ${list(refusals)}`,
    `time        ${seconds} s; everything worked again after ${longestRecoveryMs} ms at most`,
    `violations  ${violations.length}`,
    ...violations.slice(0, TOLD).map(({ kind, detail }) => `  ${kind}: ${detail}`),
  ].join('\n');
}

async function main(args: readonly string[]): Promise<void> {
  const options = readFaultOptions(args, () => randomInt(1_000_000));
  if (options.help) return void process.stdout.write(usage);
  const startedMs = performance.now();
  const report = (text: string) =>
    process.stderr.write(`[${((performance.now() - startedMs) / 1000).toFixed(1).padStart(6)} s] ${text}\n`);
  const again = `npm run faults -- --seed ${options.seed} --faults ${options.faults} --store ${options.store}`;
  const keepLogsIn = path.join('.colonnade', `faults-${options.seed}`);
  report(`seed ${options.seed}`);
  const outcome = await runFaults({ ...options, report, keepLogsIn }).catch((thrown) => {
    process.stderr.write(`again: ${again}\n`);
    throw thrown;
  });
  const { evidence: _, ...told } = outcome;
  process.stdout.write(options.json ? `${JSON.stringify(told, undefined, 2)}\n` : `${describe(outcome)}\n`);
  if (outcome.violations.length === 0) return;
  process.stderr.write(`again: ${again}\n`);
  process.exitCode = 1;
}

await main(process.argv.slice(2)).catch((thrown: unknown) => {
  const wrongOption = thrown instanceof ColonnadeError && thrown.code === 'bad_request';
  process.stderr.write(
    wrongOption ? `${thrown.message}\n\n${usage}` : `${String((thrown as Error)?.stack)}\n`,
  );
  process.exitCode = wrongOption ? 2 : 1;
});
