import { type BulkRecord, ColonnadeError, decodeTree, zBulkRecord } from '@colonnade/contracts';
import { fromPlain, type Value, type ValueObject } from '@colonnade/value';
import { fitsGlob } from './globs.ts';
import type { Converted, Problem } from './problem.ts';
import { readSls } from './read-sls.ts';

const SUFFIX = /\.(?:yaml|yml|sls)$/u;

/**
 * One file for each minion, named after it: a mapping of its pillars. The minions are registered with this master, which
 * is made when it is not there yet.
 * @param options `secrets`: globs of the names of pillars that are to be sealed
 */
export function recordsFromMinionFiles(
  files: ReadonlyMap<string, string>,
  { master, secrets = [] }: { master: string; secrets?: readonly string[] },
): Converted {
  const records: BulkRecord[] = [{ kind: 'master', id: master }];
  const problems: Problem[] = [];
  const sealed = new Set<string>();
  const seen = new Map<string, string>();
  for (const file of [...files.keys()].sort()) {
    const pillars = readSls(file, files.get(file) ?? '');
    if (Array.isArray(pillars)) {
      problems.push(...pillars);
      continue;
    }
    const id = file.slice(file.lastIndexOf('/') + 1).replace(SUFFIX, '');
    const twin = seen.get(id);
    if (twin !== undefined) problems.push({ file, reason: `is of the same minion as ${twin}` });
    seen.set(id, file);
    add(records, problems, file, { kind: 'minion', master, id });
    addPillars(records, problems, file, { tgt_type: 'minion', master, minion_id: id }, pillars, {
      secrets,
      sealed,
    });
  }
  return { records, problems, notes: [], sealed };
}

export type Target =
  | { tgt_type: 'root' }
  | { tgt_type: 'minion'; master: string; minion_id: string }
  | { tgt_type: 'collection'; collection_id: string };

/** A record for each key of a mapping. @param options `sealed`: gets the globs that fit */
export function addPillars(
  records: BulkRecord[],
  problems: Problem[],
  file: string,
  target: Target,
  pillars: ValueObject,
  { secrets, sealed }: { secrets: readonly string[]; sealed: Set<string> },
): void {
  for (const name of Object.keys(pillars).sort()) {
    const globs = secrets.filter((glob) => fitsGlob(glob, name));
    for (const glob of globs) sealed.add(glob);
    const secrecy = globs.length > 0 ? { is_secret: true } : {};
    add(records, problems, file, { kind: 'pillar', ...target, name, ...secrecy }, pillars[name]);
  }
}

/** Checked as the import will check it, so that what is wrong is told with the file it is from. */
function add(records: BulkRecord[], problems: Problem[], file: string, record: object, value?: Value): void {
  const tree = fromPlain(record) as ValueObject;
  if (value !== undefined) tree.value = value;
  try {
    records.push(decodeTree(zBulkRecord, tree));
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    problems.push({ file, reason: thrown.message });
  }
}
