import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { BULK_MEDIA_TYPES, ColonnadeError } from '@colonnade/contracts';
import { canonicalText, parseValue, type Value, type ValueObject } from '@colonnade/value';
import { EXIT, usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { confirm, YES_OPTION } from '../shared/conditions.ts';
import { queryOf } from '../shared/pages.ts';
import { asList, asObject, textOf } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';
import { createProgress } from '../terminal/progress.ts';

const MIB = 1024 * 1024;

export const importCommand = defineCommand({
  path: 'import',
  summary: 'take an estate in from YAML or JSON, all or nothing, after showing what that changes',
  details:
    'A file is tried first, and what would change is shown; exactly that is done when it is confirmed. What stands on standard input can be read only once: give --dry-run or --yes. Exit code 7 when something in it is refused.',
  args: { file: { help: 'the file; "-": standard input' } },
  options: {
    format: {
      value: 'FORMAT',
      choices: ['yaml', 'json'],
      help: 'what it is (default: by its name, else yaml)',
    },
    'dry-run': { help: 'only show what would change and what is refused' },
    'replace-secrets': { help: 'a secret that is there gets the value in the file, sealed anew' },
    ...YES_OPTION,
  },
  examples: [
    ['import estate.yaml --dry-run', 'what would change'],
    ['import estate.yaml', 'shows it, asks, and does it'],
    ['colonnade import - --format json --yes < estate.jsonl', 'from standard input'],
  ],
  async run(session, { args, options }) {
    const { 'dry-run': dryRun, yes } = options;
    const format = options.format ?? (/\.(?:json|jsonl|ndjson)$/iu.test(args.file) ? 'json' : 'yaml');
    const base = { format, replace_secrets: options['replace-secrets'] ? 'true' : undefined };
    const send = (query: Record<string, string | undefined>) =>
      upload(session, args.file, BULK_MEDIA_TYPES[format as 'yaml' | 'json'], { ...base, ...query });
    if (!dryRun && args.file === '-') {
      if (!yes) throw usageError('standard input can be read only once: give --yes, or --dry-run');
      await showReport(session, await send({}));
      return EXIT.ok;
    }
    const plan = await send({ dry_run: 'true' });
    const refused = plan.acceptable !== true;
    if (dryRun || refused || !session.json) await showReport(session, plan);
    if (refused) return EXIT.refused;
    if (dryRun) return EXIT.ok;
    await confirm('make these changes', yes);
    const done = await send({ confirm: textOf(plan.confirm) });
    if (session.json) await session.out.json(done);
    else session.out.note(`done, clock ${textOf(done.clock)}`);
    return EXIT.ok;
  },
});

async function upload(
  session: Session,
  file: string,
  mediaType: string,
  query: Record<string, string | undefined>,
): Promise<ValueObject> {
  using progress = createProgress();
  let bytes = 0;
  const source = file === '-' ? process.stdin : await openFile(file);
  const counted = async function* () {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      progress.say(`${(bytes / MIB).toFixed(1)} MiB sent`);
      yield chunk;
    }
  };
  const body = Readable.toWeb(Readable.from(counted(), { objectMode: false })) as ReadableStream<Uint8Array>;
  const headers = { 'content-type': mediaType };
  const response = await session.api().stream('POST', `/import${queryOf(query)}`, { body, headers });
  return asObject(parseValue(new Uint8Array(await response.arrayBuffer())));
}

async function openFile(file: string): Promise<Readable> {
  const handle = await open(file).catch((thrown: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read: ${thrown.code ?? thrown.message}`);
  });
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream();
  await handle.close();
  throw new ColonnadeError('misconfigured', `${file} is a folder`);
}

async function showReport({ out, json }: Session, report: ValueObject): Promise<void> {
  if (json) return await out.json(report);
  const table = out.table<Value>([
    { title: 'LINE', of: (row) => textOf(asObject(row).line), align: 'right' },
    { title: 'WHAT', of: (row) => textOf(asObject(row).op ?? asObject(row).code) },
    { title: 'KIND', of: (row) => textOf(asObject(row).kind ?? asObject(row).field) },
    { title: 'KEY', of: (row) => textOf(asObject(row).key ?? asObject(row).detail) },
    { title: 'BEFORE', of: (row) => valueText(asObject(row).before) },
    { title: 'AFTER', of: (row) => valueText(asObject(row).after) },
  ]);
  await table.add([...asList(report.diff), ...asList(report.problems)]);
  if (report.diff_more === true) out.note('… and more');
  for (const [kind, counts] of Object.entries(asObject(report.counts))) {
    const { created, updated, unchanged } = asObject(counts);
    out.note(`${kind}: ${textOf(created)} new, ${textOf(updated)} changed, ${textOf(unchanged)} as they are`);
  }
}

function valueText(value: Value | undefined): string {
  return value === undefined ? '' : canonicalText(value);
}
