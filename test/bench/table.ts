import { type Row, ratioOf } from './figure.ts';
import type { Machine } from './machine.ts';
import type { Spread } from './measure.ts';

export type Results = { machine: Machine; figures: Readonly<Record<string, readonly Row[]>> };

/** A change of more than this is pointed out. */
const NOTABLE = 0.1;

/** Markdown, as it stands in the README. */
export function renderTable(results: Results, last: Results | undefined): string {
  const head = ['what', 'ours (min–max)', 'floor (min–max)', 'ratio', 'goal', 'last run'];
  const lines = Object.entries(results.figures).flatMap(([name, rows]) =>
    rows.map((row) =>
      renderRow(
        row,
        last?.figures[name]?.find(({ what }) => what === row.what),
      ),
    ),
  );
  const notes = Object.values(results.figures)
    .flat()
    .filter(({ note }) => note !== undefined)
    .map(({ what, note }) => `- ${what}: ${note}`);
  const machine = Object.entries(results.machine).map(([key, value]) => `${key} ${value}`);
  return [
    machine.join('; '),
    '',
    `| ${head.join(' | ')} |`,
    `| ${head.map(() => '---').join(' | ')} |`,
    ...lines,
    ...(notes.length > 0 ? ['', ...notes] : []),
  ].join('\n');
}

function renderRow(row: Row, before: Row | undefined): string {
  const ratio = ratioOf(row);
  const floor = row.floor === undefined ? '' : `${spread(row.floor)} ${row.unit} (${row.floorIs})`;
  const goal = row.goal === undefined ? '' : `${row.goal.text}: ${row.goal.met ? 'met' : '**not met**'}`;
  const cells = [
    row.what,
    `${spread(row.ours)} ${row.unit}`,
    floor,
    ratio === undefined ? '' : ratio.toFixed(2),
    goal,
    compare(row, before),
  ];
  return `| ${cells.join(' | ')} |`;
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
