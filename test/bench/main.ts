// `npm run bench`: each figure beside its floor, in the same run. Nothing here is a test: no figure makes it fail.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { ColonnadeError } from '@colonnade/contracts';
import type { BenchOptions, Figure, Row } from './figure.ts';
import { auditFile } from './figures/audit-file.ts';
import { auditHttp } from './figures/audit-http.ts';
import { auditMemory } from './figures/audit-memory.ts';
import { auditPolicy } from './figures/audit-policy.ts';
import { capacity } from './figures/capacity.ts';
import { generations } from './figures/generations.ts';
import { hooks } from './figures/hooks.ts';
import { identity } from './figures/identity.ts';
import { merge } from './figures/merge.ts';
import { open } from './figures/open.ts';
import { peers } from './figures/peers.ts';
import { rewrap } from './figures/rewrap.ts';
import { size } from './figures/size.ts';
import { storm } from './figures/storm.ts';
import { tls } from './figures/tls.ts';
import { writes } from './figures/writes.ts';
import { describeMachine } from './machine.ts';
import { readBenchOptions, usage } from './options.ts';
import { type Results, renderMarkdown, renderTable } from './table.ts';

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
    identity,
    rewrap,
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
  if (options.kept) return print(keptOf(last, options.names), undefined, options.markdown);
  const startedMs = performance.now();
  const report = (text: string) =>
    process.stderr.write(`[${((performance.now() - startedMs) / 1000).toFixed(1).padStart(6)} s] ${text}\n`);
  const results: Results = {
    machine: await describeMachine(),
    figures: await measureAll(options.names, { ...options, report }),
  };
  print(results, last, options.markdown);
  // Figures that were not measured this time stay for the next comparison.
  const kept: Results = { machine: results.machine, figures: { ...last?.figures, ...results.figures } };
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(kept, undefined, 2)}\n`);
  report(`kept in ${path.relative(process.cwd(), file)}`);
}

async function measureAll(
  names: readonly string[],
  options: BenchOptions,
): Promise<Record<string, readonly Row[]>> {
  const measured: Record<string, readonly Row[]> = {};
  for (const figure of figures.filter(({ name }) => names.includes(name))) {
    options.report(figure.name);
    try {
      measured[figure.name] = await figure.measure(options);
    } catch (error) {
      options.report(`${figure.name} could not be measured: ${(error as Error).stack}`);
      process.exitCode = 1;
    }
  }
  return measured;
}

function print(results: Results, last: Results | undefined, markdown: boolean): void {
  process.stdout.write(`${markdown ? renderMarkdown(results) : renderTable(results, last)}\n`);
}

/** @throws ColonnadeError `bad_request`: nothing was measured yet */
function keptOf(last: Results | undefined, names: readonly string[]): Results {
  if (last === undefined) throw new ColonnadeError('bad_request', '--kept: nothing was measured yet');
  // In the order of the figures, whatever was measured first.
  const rows = figures.flatMap(({ name }): [string, readonly Row[]][] => {
    const kept = last.figures[name];
    return names.includes(name) && kept !== undefined ? [[name, kept]] : [];
  });
  return { machine: last.machine, figures: Object.fromEntries(rows) };
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
