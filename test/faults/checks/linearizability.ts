import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { buildGo } from '../../support/go.ts';
import { ABSENT, type History, type Operation, type ValueId, violate } from '../history.ts';
import { startOf, type Truth, UNKNOWN_SECRET, type Version } from './truth.ts';

type Checked = Pick<Operation, 'client' | 'kind' | 'expect' | 'value' | 'call' | 'return'> & {
  outcome: 'ok' | 'refused' | 'maybe';
};
type Verdict = { key: string; result: 'ok' | 'illegal' | 'undecided'; stuck?: Checked };

const LIMIT_MS = 60_000;

/** The program that decides, built when needed. */
export function buildChecker(): Promise<string> {
  return buildGo(path.join(import.meta.dirname, '..', 'checker'));
}

/**
 * Asks for each register whether what its clients saw, over HTTP and merged, fits one order of all calls in which each
 * takes effect between its beginning and its end.
 * @returns how many registers were looked at
 */
export async function checkLinearizability(history: History, truth: Truth): Promise<number> {
  const end = history.operations.concat().reduce((most, o) => Math.max(most, o.return), 0) + 1e9;
  const byKey = new Map<string, Checked[]>();
  const add = (key: string, operation: Checked | undefined) => {
    if (operation === undefined) return;
    const list = byKey.get(key) ?? [];
    byKey.set(key, list);
    list.push(operation);
  };
  const seen = new Set(history.merges.flatMap(({ seen }) => [...seen.values()]));
  for (const o of history.operations) add(o.key, settle(o, truth.get(o.key) ?? [], seen, end));
  for (const { client, call, return: ended, seen } of history.merges) {
    for (const [key, value] of seen) {
      add(key, { client, kind: 'read', expect: ABSENT, value, outcome: 'ok', call, return: ended });
    }
  }
  const registers = [...byKey].map(([key, operations]) => ({ key, init: startOf(key), operations }));
  for (const { key, result, stuck } of await ask(registers)) {
    if (result === 'ok') continue;
    const what = stuck === undefined ? '' : `; no place for ${JSON.stringify(stuck)}`;
    violate(
      history,
      result === 'illegal' ? 'not linearizable' : 'linearizability undecided',
      `${key}${what}`,
    );
  }
  return registers.length;
}

/** An open outcome is settled by what the estate says of itself, where that is certain. */
function settle(
  operation: Operation,
  versions: readonly Version[],
  seen: ReadonlySet<ValueId>,
  end: number,
): Checked | undefined {
  const { client, kind, expect, value, outcome, call, return: ended, pid } = operation;
  const settled = { client, kind, expect, value, call };
  if (outcome === 'ok') return { ...settled, outcome, return: ended };
  if (kind === 'read' || (kind === 'set' && outcome === 'refused')) return undefined;
  if (outcome === 'refused') return { ...settled, outcome, return: ended };
  const maybe = { ...settled, outcome: 'maybe', return: end } as const;
  if (kind === 'set') return versions.some(({ id }) => id === value) ? maybe : undefined;
  if (value === ABSENT) return versions.some((v) => v.op === 'delete' && v.pid === pid) ? maybe : undefined;
  if (seen.has(value) || versions.some(({ id }) => id === value)) return { ...maybe, outcome: 'ok' };
  return versions.some(({ id }) => id === UNKNOWN_SECRET) ? maybe : undefined;
}

async function ask(registers: readonly unknown[]): Promise<Verdict[]> {
  const child = spawn(await buildChecker(), { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ limitMs: LIMIT_MS, registers }));
  const answer = await text(child.stdout);
  return JSON.parse(answer) as Verdict[];
}
