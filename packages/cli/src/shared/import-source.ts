import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { BulkRecord } from '@colonnade/contracts';
import { linesOf } from '@colonnade/estate-files';
import { fromPlain } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { describeRecord, readMinionFiles, readSaltTree } from './estate-files.ts';
import { asList, asObject, textOf } from './view.ts';

/** What is imported, to be sent as often as needed. */
export type ImportSource = {
  format: 'yaml' | 'json';
  open(): Promise<AsyncIterable<Uint8Array>>;
  /** What stands in a line of it, where people do not know the lines. */
  describe?: (line: number) => string;
};

export type ImportOptions = {
  format: string | undefined;
  'salt-tree': string | undefined;
  'minion-yaml': string | undefined;
  master: string | undefined;
  collection: readonly string[];
  secret: readonly string[];
};

/** Records of one piece that is sent. */
const PIECE = 200;

/**
 * A file of records, or files of people turned into them.
 * @returns undefined when something in those cannot be taken, which is told then
 * @throws ColonnadeError `misconfigured`
 */
export async function openSource(
  session: Session,
  file: string | undefined,
  options: ImportOptions,
): Promise<ImportSource | undefined> {
  const { 'salt-tree': tree, 'minion-yaml': minions, master, collection, secret } = options;
  if ([file, tree, minions].filter((one) => one !== undefined).length !== 1) {
    throw usageError('give one of FILE, --salt-tree and --minion-yaml');
  }
  if (file !== undefined) {
    if (master !== undefined || collection.length + secret.length > 0) {
      throw usageError('--master, --collection and --secret are for --salt-tree and --minion-yaml');
    }
    const format = options.format ?? (/\.(?:json|jsonl|ndjson)$/iu.test(file) ? 'json' : 'yaml');
    return { format: format as ImportSource['format'], open: () => openFile(file) };
  }
  if (options.format !== undefined) throw usageError('--format is for a file of records');
  if (master === undefined) throw usageError('whose minions are they? give --master');
  if (tree === undefined && collection.length > 0) throw usageError('--collection is for --salt-tree');
  const ask = { master, collections: collection, secrets: secret };
  const converted = await (tree === undefined
    ? readMinionFiles(minions ?? '', ask)
    : readSaltTree(tree, ask));
  const { records, problems, notes } = converted;
  if (tree !== undefined) notes.push(...(await rootNotes(session, master, records)));
  if (!session.json || problems.length > 0) await tell(session, converted);
  else for (const { file: where, reason } of notes) session.out.note(`${where}: ${reason}`);
  if (problems.length > 0) return undefined;
  return {
    format: 'json',
    open: async () => Readable.from(piecesOf(records)),
    describe: (line) => describeRecord(records[line - 1]),
  };
}

/** In a master's tree `'*'` means its own minions; the root is of all masters. */
async function rootNotes(
  session: Session,
  master: string,
  records: readonly BulkRecord[],
): Promise<{ file: string; reason: string }[]> {
  if (!records.some((one) => one.kind === 'pillar' && one.tgt_type === 'root')) return [];
  const { value } = await session.api().call('GET', '/masters?limit=2');
  const others = asList(asObject(value).items).map((one) => textOf(asObject(one).id));
  const other = others.find((id) => id !== master);
  if (other === undefined) return [];
  const reason = `"*" becomes root pillars, which the minions of other masters (${other} …) get too; name a collection for it (--collection '*=ID') where only those of ${master} are meant`;
  return [{ file: 'top.sls', reason }];
}

type Told = { problems: readonly { file: string; line?: number; reason: string }[]; notes: Told['problems'] };

async function tell({ out, json }: Session, { problems, notes }: Told): Promise<void> {
  if (json) return await out.json(fromPlain({ acceptable: false, problems, notes }));
  for (const { file, line, reason } of [...notes, ...problems]) {
    out.note(`${file}${line === undefined ? '' : `:${line}`}: ${reason}`);
  }
  if (problems.length > 0) out.note(`${problems.length} refused; nothing was sent`);
}

function* piecesOf(records: readonly BulkRecord[]): Generator<Buffer> {
  for (let start = 0; start < records.length; start += PIECE) {
    yield Buffer.from([...linesOf(records.slice(start, start + PIECE))].join(''));
  }
}

async function openFile(file: string): Promise<Readable> {
  if (file === '-') return process.stdin;
  const handle = await open(file).catch((thrown: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read: ${thrown.code ?? thrown.message}`);
  });
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream();
  await handle.close();
  throw usageError(`${file} is a folder`);
}
