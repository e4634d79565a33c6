// `npm run bench`: each figure beside its floor, in the same run. Nothing here is a test: no figure makes it fail.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { ColonnadeError } from '@colonnade/contracts';
import type { Figure, Row } from './figure.ts';
import { auditFile } from './figures/audit-file.ts';
import { auditHttp } from './figures/audit-http.ts';
import { auditMemory } from './figures/audit-memory.ts';
import { auditPolicy } from './figures/audit-policy.ts';
import { capacity } from './figures/capacity.ts';
import { generations } from './figures/generations.ts';
import { hooks } from './figures/hooks.ts';
import { merge } from './figures/merge.ts';
import { open } from './figures/open.ts';
import { peers } from './figures/peers.ts';
import { size } from './figures/size.ts';
import { storm } from './figures/storm.ts';
import { tls } from './figures/tls.ts';
import { writes } from './figures/writes.ts';
import { describeMachine } from './machine.ts';
import { readBenchOptions, usage } from './options.ts';
import { type Results, renderTable } from './table.ts';

const figures: readonly Figure[] = [
  ...[
    merge,
    storm,
    peers,
    open,
    size,
    writes,
    auditFile,
    auditHttp,
    auditPolicy,
    auditMemory,
    capacity,
    hooks,
    generations,
    tls,
  ],
];
const defaultFile = path.join(import.meta.dirname, '..', '..', '.colonnade', 'bench.json');

async function main(args: readonly string[]): Promise<void> {
  const names = figures.map(({ name }) => name);
  const options = readBenchOptions(args, names);
  if (options.help) return void process.stdout.write(usage(figures));
  const file = options.file ?? defaultFile;
  const last = await readLast(file);
  const startedMs = performance.now();
  const report = (text: string) =>
    process.stderr.write(`[${((performance.now() - startedMs) / 1000).toFixed(1).padStart(6)} s] ${text}\n`);
  const machine = await describeMachine();
  const measured: Record<string, readonly Row[]> = {};
  for (const figure of figures.filter(({ name }) => options.names.includes(name))) {
    report(figure.name);
    try {
      measured[figure.name] = await figure.measure({ ...options, report });
    } catch (error) {
      report(`${figure.name} could not be measured: ${(error as Error).stack}`);
      process.exitCode = 1;
    }
  }
  const results: Results = { machine, figures: measured };
  process.stdout.write(`${renderTable(results, last)}\n`);
  // Figures that were not measured this time stay for the next comparison.
  const kept: Results = { machine, figures: { ...last?.figures, ...measured } };
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(kept, undefined, 2)}\n`);
  report(`kept in ${path.relative(process.cwd(), file)}`);
}

async function readLast(file: string): Promise<Results | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Results);
}

await main(process.argv.slice(2)).catch((thrown: unknown) => {
  const wrongOption = thrown instanceof ColonnadeError && thrown.code === 'bad_request';
  process.stderr.write(
    wrongOption ? `${thrown.message}\n\n${usage(figures)}` : `${(thrown as Error).stack}\n`,
  );
  process.exitCode = wrongOption ? 2 : 1;
});
