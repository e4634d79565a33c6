import { readFileSync } from 'node:fs';
import { ColonnadeError } from '@colonnade/contracts';
import { type NodeFacts, type NodeProcess, parseJournal } from '../rules/node-facts.ts';
import type { Ssh } from './ssh.ts';

/** Paths on a node; the helper gets them as arguments. */
export type NodePaths = { manifest: string; ca: string; key: string | undefined };

const HELPER = readFileSync(new URL('./helper.sh', import.meta.url), 'utf8');
const STEP_MS = 30_000;

export type Verb =
  | 'look'
  | 'read-ca'
  | 'read-previous'
  | 'begin'
  | 'write'
  | 'write-previous'
  | 'write-key'
  | 'arm'
  | 'note'
  | 'park'
  | 'unpark'
  | 'discard-parked'
  | 'finish';

/**
 * Runs one verb of the helper on a node, as root.
 * @returns what it printed
 * @throws ColonnadeError `unavailable`: the connection; `unprocessable`: the helper or sudo said no, with its words
 */
export async function runHelper(
  ssh: Ssh,
  paths: NodePaths,
  {
    verb,
    args = [],
    input = '',
    user,
  }: { verb: Verb; args?: readonly string[]; input?: string; user: string },
): Promise<string> {
  const words = [
    '/bin/sh',
    '-c',
    HELPER,
    'colonnade',
    verb,
    paths.manifest,
    paths.ca,
    paths.key ?? '-',
    ...args,
  ];
  const command = [...(user === 'root' ? [] : ['sudo', '-n', '--']), ...words].map(quote).join(' ');
  const { code, stdout, stderr } = await ssh.run(command, input, STEP_MS);
  if (code === 0) return stdout;
  const said = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  throw new ColonnadeError('unprocessable', `${verb}: exit code ${code}${said === '' ? '' : `: ${said}`}`);
}

/** One word of a POSIX shell, whatever stands in it. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What `look` printed. @throws ColonnadeError `unprocessable`: it is not whole */
export function parseLook(text: string): NodeFacts {
  const lines = text.trimEnd().split('\n');
  if (lines.pop() !== 'end') throw new ColonnadeError('unprocessable', 'look: its output is not whole');
  let ca: NodeFacts['ca'];
  let keyHash: string | undefined;
  let manifest: NodeFacts['manifest'] | undefined;
  let journal: NodeFacts['journal'];
  let armed = false;
  const processes: NodeProcess[] = [];
  for (const line of lines) {
    const [word, first = '', second = ''] = line.split(' ');
    if (word === 'ca') ca = { hash: first, ageMs: Number(second) };
    else if (word === 'key') keyHash = first;
    else if (word === 'manifest')
      manifest = { where: first as NodeFacts['manifest']['where'], ageMs: Number(second) };
    else if (word === 'process') processes.push({ id: first, ageMs: Number(second) });
    else if (word === 'armed') armed = true;
    else if (word === 'journal') journal = parseJournal(Buffer.from(first, 'base64').toString('utf8'));
  }
  if (manifest === undefined) throw new ColonnadeError('unprocessable', 'look: its output is not whole');
  return { ca, keyHash, manifest, processes, armed, journal };
}
