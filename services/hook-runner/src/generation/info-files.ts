import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Seed 002, policy-generation-info: what the last generations did, for people and for hooks. */
export type InfoFiles = { nodeIds: string; minions: string; failure: string };

export function infoFiles(stateDir: string): InfoFiles {
  const folder = path.join(stateDir, 'policy-generation-info');
  return {
    nodeIds: path.join(folder, 'last-updated-nodeids'),
    minions: path.join(folder, 'last-updated-minions'),
    failure: path.join(folder, 'last-failure-message'),
  };
}

/** Replaces a file, and keeps the one before it under `.old`. Whoever reads either meanwhile sees one, whole. */
async function replaceFile(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o755 });
  await writeFile(`${file}.new`, text, { mode: 0o644 });
  // A copy: with a rename there would be none for a moment.
  const isKept = await copyFile(file, `${file}.old.new`).then(
    () => true,
    (thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'ENOENT') return false;
      throw thrown;
    },
  );
  if (isKept) await rename(`${file}.old.new`, `${file}.old`);
  await rename(`${file}.new`, file);
}

/** One word of bash, whatever the text holds. */
function quoteForBash(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Three bash arrays, sourceable; policy servers come first (seed 002). */
export function nodeIdsText(
  generation: string,
  servers: readonly string[],
  nodes: readonly string[],
): string {
  const array = (name: string, ids: readonly string[]) => `${name}=(${ids.map(quoteForBash).join(' ')})\n`;
  return [
    `# Minions whose policies the generation of ${generation} updated\n`,
    array('RUDDER_UPDATED_POLICY_SERVER_IDS', servers),
    array('RUDDER_UPDATED_NODE_IDS', nodes),
    array('RUDDER_NODE_IDS', [...servers, ...nodes]),
  ].join('');
}

export async function writeNodeIds(files: InfoFiles, text: string): Promise<void> {
  await replaceFile(files.nodeIds, text);
}

/** A line `master/minion` for each; neither can hold a line's end or begin with `#`. */
export async function writeMinions(
  files: InfoFiles,
  generation: string,
  minions: readonly string[],
): Promise<void> {
  const head = `# Minions whose policies the generation of ${generation} updated\n`;
  await replaceFile(files.minions, head + minions.map((one) => `${one}\n`).join(''));
}

export async function writeFailure(files: InfoFiles, generation: string, message: string): Promise<void> {
  await replaceFile(files.failure, `# The generation of ${generation} failed\n${message}\n`);
}
