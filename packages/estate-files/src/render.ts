import type { Value, ValueObject } from '@colonnade/value';
import type { Problem } from './problem.ts';
import { mergeValues, readSls } from './read-sls.ts';

export type Files = ReadonlyMap<string, string>;

/**
 * Puts the pillar of one minion together from SLS files, in the order and with the repetitions of Salt's own
 * `render_pillar`. Problems are told once, however often a file is read.
 */
export type Renderer = {
  /** A file of the tree as it is, without what it includes. */
  read(file: string): ValueObject | undefined;
  render(names: readonly string[]): ValueObject;
};

/** What was read of an SLS in one rendering, under its name: its own part, as Salt keeps it for a second include. */
type Seen = Map<string, ValueObject>;

export function createRenderer(files: Files, problems: Problem[]): Renderer {
  const read = new Map<string, ValueObject | undefined>();
  const told = new Set<string>();
  const tell = (...found: Problem[]) => {
    for (const problem of found) {
      const key = JSON.stringify(problem);
      if (!told.has(key)) problems.push(problem);
      told.add(key);
    }
  };
  const readFile = (file: string): ValueObject | undefined => {
    if (read.has(file)) return read.get(file);
    const text = files.get(file);
    const found = text === undefined ? [{ file, reason: 'is not in the tree' }] : readSls(file, text);
    if (Array.isArray(found)) tell(...found);
    const state = Array.isArray(found) ? undefined : found;
    read.set(file, state);
    return state;
  };
  const renderOne = (name: string, from: string, seen: Seen): ValueObject => {
    const file = fileOf(files, name);
    if (file === undefined) {
      tell({ file: from, reason: `the SLS ${JSON.stringify(name)} is not in the tree` });
      return none();
    }
    const { include = [], ...rest } = readFile(file) ?? none();
    const own = Object.setPrototypeOf(rest, null) as ValueObject;
    seen.set(name, own);
    if (!Array.isArray(include) || include.some((item) => typeof item !== 'string')) {
      tell({ file, reason: 'an include with options (key, defaults): put its pillars in by hand' });
      return own;
    }
    let merged: Value = none();
    for (const included of include.flatMap((item) => includedBy(files, name, file, item as string))) {
      merged = mergeValues(merged, seen.get(included) ?? renderOne(included, file, seen));
    }
    return mergeValues(merged, own) as ValueObject;
  };
  return {
    read: readFile,
    render(names) {
      const seen: Seen = new Map();
      let pillar: Value = none();
      for (const name of new Set(names)) pillar = mergeValues(pillar, renderOne(name, 'top.sls', seen));
      return pillar as ValueObject;
    },
  };
}

function none(): ValueObject {
  return Object.setPrototypeOf({}, null) as ValueObject;
}

function fileOf(files: Files, name: string): string | undefined {
  const stem = name.replaceAll('.', '/');
  return [`${stem}.sls`, `${stem}/init.sls`].find((path) => files.has(path));
}

/** `.x` in `a/b.sls` is `a.x`, in `a/b/init.sls` it is `a.b.x`; and also `x`, where there is one. */
function includedBy(files: Files, name: string, file: string, included: string): string[] {
  if (!included.startsWith('.')) return [included.replaceAll('/', '.')];
  const plain = included.replace(/^\.+/u, '').replaceAll('/', '.');
  const folder = file.endsWith('/init.sls') ? name : name.split('.').slice(0, -1).join('.');
  const near = folder === '' ? included.slice(1) : `${folder}${included}`;
  return [...new Set(fileOf(files, plain) === undefined ? [near] : [plain, near])];
}
