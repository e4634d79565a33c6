import { open, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { TextDecoder } from 'node:util';
import { type BulkRecord, ColonnadeError } from '@colonnade/contracts';
import { type Converted, recordsFromMinionFiles, recordsFromSaltTree } from '@colonnade/estate-files';
import { usageError } from '../exit-codes.ts';

/** Files of people, read as records of an import. Sizes are bounded: a folder named by mistake may hold anything. */

const MAX_FILES = 20_000;
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_DEPTH = 32;

export type FilesAsk = {
  master: string;
  /** `TARGET=ID` */
  collections: readonly string[];
  /** Globs. */
  secrets: readonly string[];
};

/** The pillar tree of Salt in a folder. @throws ColonnadeError `misconfigured` */
export async function readSaltTree(
  folder: string,
  { master, collections, secrets }: FilesAsk,
): Promise<Converted> {
  const files = await readFolder(folder, /\.sls$/u);
  const named = collections.map((text): [string, string] => {
    const at = text.lastIndexOf('=');
    if (at <= 0 || at === text.length - 1) throw usageError(`--collection: ${text} is not TARGET=ID`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  const options = { master, secrets, collections: Object.fromEntries(named) };
  return checkSecrets(recordsFromSaltTree(files, options), secrets);
}

/** One file of a minion, or a folder of them. @throws ColonnadeError `misconfigured` */
export async function readMinionFiles(place: string, { master, secrets }: FilesAsk): Promise<Converted> {
  const isFolder = await isDirectory(place);
  const files = isFolder
    ? await readFolder(place, /\.(?:yaml|yml|sls)$/u)
    : new Map([[path.basename(place), await readText(place, MAX_FILE_BYTES)]]);
  if (files.size === 0) throw usageError(`${place} holds no file that ends in .yaml, .yml or .sls`);
  return checkSecrets(recordsFromMinionFiles(files, { master, secrets }), secrets);
}

/** What a record is about, for people. */
export function describeRecord(record: BulkRecord | undefined): string {
  if (record === undefined) return '';
  switch (record.kind) {
    case 'pillar': {
      const { tgt_type, master, minion_id, collection_id, name } = record;
      const target = minion_id === undefined ? (collection_id ?? '') : `${master}/${minion_id}`;
      return [tgt_type, target, name].filter((part) => part !== '').join(' ');
    }
    case 'minion':
      return `minion ${record.master}/${record.id}`;
    case 'master':
      return `master ${record.id}`;
    default:
      return record.kind;
  }
}

/** A glob that fits nothing was meant for something, which would stay readable. */
function checkSecrets(converted: Converted, secrets: readonly string[]): Converted {
  const unused = secrets.filter((glob) => !converted.sealed.has(glob));
  if (unused.length === 0 || converted.problems.length > 0) return converted;
  throw usageError(`--secret: no pillar has a name like ${unused.join(', ')}`);
}

/** By their path from the folder, with `/`. Links are followed, as Salt does. */
async function readFolder(folder: string, wanted: RegExp): Promise<Map<string, string>> {
  if (!(await isDirectory(folder))) throw usageError(`${folder} is no folder`);
  const files = new Map<string, string>();
  let bytes = 0;
  const walk = async (dir: string, above: readonly string[]): Promise<void> => {
    const real = await realpath(dir).catch((thrown) => Promise.reject(unreadable(dir, thrown)));
    if (above.includes(real) || above.length > MAX_DEPTH) throw usageError(`${dir}: a folder within itself`);
    const entries = await readdir(dir).catch((thrown) => Promise.reject(unreadable(dir, thrown)));
    for (const name of entries.sort()) {
      const place = path.join(dir, name);
      if (await isDirectory(place)) {
        if (!name.startsWith('.')) await walk(place, [...above, real]);
        continue;
      }
      if (!wanted.test(name)) continue;
      if (files.size >= MAX_FILES) throw usageError(`${folder} holds more than ${MAX_FILES} files`);
      const text = await readText(place, Math.min(MAX_FILE_BYTES, MAX_BYTES - bytes));
      bytes += text.length;
      files.set(path.relative(folder, place).replaceAll(path.sep, '/'), text);
    }
  };
  await walk(folder, []);
  return files;
}

async function isDirectory(place: string): Promise<boolean> {
  const handle = await open(place).catch((thrown) => Promise.reject(unreadable(place, thrown)));
  try {
    return (await handle.stat()).isDirectory();
  } finally {
    await handle.close();
  }
}

async function readText(place: string, maxBytes: number): Promise<string> {
  const handle = await open(place).catch((thrown) => Promise.reject(unreadable(place, thrown)));
  try {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of handle.createReadStream({ autoClose: false })) {
      bytes += (chunk as Buffer).length;
      if (bytes > maxBytes) throw usageError(`${place} is too large to be read here`);
      chunks.push(chunk as Buffer);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    if (thrown instanceof TypeError) throw usageError(`${place} is not UTF-8`);
    throw unreadable(place, thrown as NodeJS.ErrnoException);
  } finally {
    await handle.close();
  }
}

function unreadable(place: string, thrown: NodeJS.ErrnoException): ColonnadeError {
  return usageError(`${place} cannot be read: ${thrown.code ?? thrown.message}`);
}
