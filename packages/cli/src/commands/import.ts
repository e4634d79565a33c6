import { Readable } from 'node:stream';
import { BULK_MEDIA_TYPES } from '@colonnade/contracts';
import { canonicalText, parseValue, type Value, type ValueObject } from '@colonnade/value';
import { EXIT, usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { confirm, YES_OPTION } from '../shared/conditions.ts';
import { type ImportSource, openSource } from '../shared/import-source.ts';
import { queryOf } from '../shared/pages.ts';
import { asList, asObject, textOf } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';
import { createProgress } from '../terminal/progress.ts';

const MIB = 1024 * 1024;

export const importCommand = defineCommand({
  path: 'import',
  summary: 'take an estate in from YAML or JSON, all or nothing, after showing what that changes',
  details:
    'A file is tried first, and what would change is shown; exactly that is done when it is confirmed. What stands on standard input can be read only once: give --dry-run or --yes. Exit code 7 when something in it is refused. Instead of a file of records it takes a pillar tree of Salt, or plain YAML of minions; what of them cannot be taken is named with file and line, and then nothing is sent. A tree with Jinja is not rendered. Whatever --secret does not name is imported readable: name what is to be sealed.',
  args: { file: { help: 'records, as an export has them; "-": standard input', optional: true } },
  options: {
    format: {
      value: 'FORMAT',
      choices: ['yaml', 'json'],
      help: 'what the file is (default: by its name, else yaml)',
    },
    'salt-tree': { value: 'DIR', help: 'a pillar root of Salt, with its top.sls, instead of a file' },
    'minion-yaml': {
      value: 'PATH',
      help: 'one YAML file named after its minion, or a folder of them, instead',
    },
    master: { value: 'ID', help: 'the master of the minions in --salt-tree and --minion-yaml' },
    collection: {
      value: 'TARGET=ID',
      repeat: true,
      help: 'a target of top.sls that stands for a collection; may be given several times',
    },
    secret: {
      value: 'GLOB',
      repeat: true,
      help: 'seal pillars with such names, of --salt-tree and --minion-yaml; may be given several times',
    },
    'dry-run': { help: 'only show what would change and what is refused' },
    'replace-secrets': { help: 'a secret that is there gets the value in the file, sealed anew' },
    ...YES_OPTION,
  },
  examples: [
    ['import estate.yaml --dry-run', 'what would change'],
    ['import estate.yaml', 'shows it, asks, and does it'],
    ['colonnade import - --format json --yes < estate.jsonl', 'from standard input'],
    [
      "import --salt-tree /srv/pillar --master salt-a --collection 'web*=web' --secret '*password*' --dry-run",
      "what a master's own pillar tree would become",
    ],
    ['import --minion-yaml ./minions --master salt-a', './minions/web-1.example.yaml, and so on'],
  ],
  async run(session, { args, options }) {
    const { 'dry-run': dryRun, yes } = options;
    const source = await openSource(session, args.file, options);
    if (source === undefined) return EXIT.refused;
    const replace_secrets = options['replace-secrets'] ? 'true' : undefined;
    const send = (query: Record<string, string | undefined>) =>
      upload(session, source, { replace_secrets, ...query });
    if (!dryRun && args.file === '-') {
      if (!yes) throw usageError('standard input can be read only once: give --yes, or --dry-run');
      await showReport(session, await send({}), source);
      return EXIT.ok;
    }
    const plan = await send({ dry_run: 'true' });
    const refused = plan.acceptable !== true;
    if (dryRun || refused || !session.json) await showReport(session, plan, source);
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
  source: ImportSource,
  query: Record<string, string | undefined>,
): Promise<ValueObject> {
  using progress = createProgress();
  let bytes = 0;
  const content = await source.open();
  const counted = async function* () {
    for await (const chunk of content) {
      bytes += chunk.length;
      progress.say(`${(bytes / MIB).toFixed(1)} MiB sent`);
      yield chunk;
    }
  };
  const body = Readable.toWeb(Readable.from(counted(), { objectMode: false })) as ReadableStream<Uint8Array>;
  const headers = { 'content-type': BULK_MEDIA_TYPES[source.format] };
  const path = `/import${queryOf({ format: source.format, ...query })}`;
  const response = await session.api().stream('POST', path, { body, headers });
  return asObject(parseValue(new Uint8Array(await response.arrayBuffer())));
}

async function showReport(
  { out, json }: Session,
  report: ValueObject,
  { describe }: ImportSource,
): Promise<void> {
  if (json) return await out.json(report);
  const lineOf = (row: ValueObject) => textOf(row.line);
  const table = out.table<Value>([
    describe === undefined
      ? { title: 'LINE', of: (row) => lineOf(asObject(row)), align: 'right' }
      : { title: 'RECORD', of: (row) => describe(Number(lineOf(asObject(row)))) },
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
