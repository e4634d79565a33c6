import { type Row, ratioOf } from './figure.ts';
import type { Machine } from './machine.ts';
import type { Spread } from './measure.ts';

export type Results = { machine: Machine; figures: Readonly<Record<string, readonly Row[]>> };

/** A change of more than this is pointed out. */
const NOTABLE = 0.1;

const HEAD = ['what', 'ours (min–max)', 'beside it (min–max)', 'ratio', 'goal', 'met'];

/** What a person at a terminal looks at: every figure, and how it has changed since the last run. */
export function renderTable(results: Results, last: Results | undefined): string {
  const rows = Object.entries(results.figures).flatMap(([name, figure]) =>
    figure.map((row) => {
      const before = last?.figures[name]?.find(({ what }) => what === row.what);
      return [...cellsOf(row), compare(row, before)];
    }),
  );
  const all = Object.values(results.figures).flat();
  return [describe(results.machine), '', ...table([...HEAD, 'last run'], rows), ...notesOf(all)].join('\n');
}

/** Markdown, as it stands in the README of the repository: the machine, the figures, and why a goal is not met. */
export function renderMarkdown(results: Results): string {
  const all = Object.values(results.figures).flat();
  return [
    ...[`Measured on: ${describe(results.machine)}.`, '', ...table(HEAD, all.map(cellsOf)), ...notesOf(all)],
  ].join('\n');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

function cellsOf(row: Row): string[] {
  const ratio = ratioOf(row);
  return [
    row.what,
    `${spread(row.ours)} ${row.unit}`,
    row.floor === undefined ? '' : `${spread(row.floor)} ${row.unit}: ${row.floorIs}`,
    ratio === undefined ? '' : ratio.toFixed(2),
    row.goal?.text ?? '',
    row.goal === undefined ? '' : row.goal.met ? 'met' : '**not met**',
  ];
}

/** What several rows say alike is said once, with all of them. */
function notesOf(rows: readonly Row[]): string[] {
  const saying = new Map<string, string[]>();
  const say = (text: string, what: string) => saying.set(text, [...(saying.get(text) ?? []), what]);
  for (const { what, note, goal, reason } of rows) {
    if (note !== undefined) say(note, what);
    if (reason !== undefined && goal?.met === false) say(`why not: ${reason}`, what);
  }
  const notes = [...saying].map(([text, whats]) => `- ${whats.join('; ')}: ${text}.`);
  return notes.length === 0 ? [] : ['', ...notes];
}

function describe(machine: Machine): string {
  return Object.entries(machine)
    .map(([key, value]) => `${key} ${value}`)
    .join('; ');
}

function spread({ min, median, max, runs }: Spread): string {
  return runs === 1 ? short(median) : `${short(median)} (${short(min)}–${short(max)})`;
}

function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

/** How the median, over its floor where there is one, has changed since the last run. */
function compare(row: Row, before: Row | undefined): string {
  if (before === undefined) return '';
  const [now, then] = [ratioOf(row) ?? row.ours.median, ratioOf(before) ?? before.ours.median];
  if (then === 0) return '';
  const change = now / then - 1;
  const worse = row.better === 'lower' ? change > NOTABLE : row.better === 'higher' && change < -NOTABLE;
  return `${change >= 0 ? '+' : '−'}${Math.abs(change * 100).toFixed(0)} %${worse ? ' worse' : ''}`;
}
