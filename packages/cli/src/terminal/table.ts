import stringWidth from 'string-width';
import { escapeLine } from './escape.ts';

export type Column<Row> = {
  title: string;
  of: (row: Row) => string;
  align?: 'right';
};

export type TableStyle = {
  /** Columns of the terminal; undefined: nothing is cut. */
  width: number | undefined;
  bold: (text: string) => string;
};

const GAP = '  ';
/** A column that is cut keeps at least this much. */
const LEAST = 8;

/** Keeps the widths of the first rows, so that a long list can be printed in parts. */
export function createTable<Row>(columns: readonly Column<Row>[], style: TableStyle) {
  let widths: number[] | undefined;
  return {
    /** Lines of these rows; the first ones come with the titles. */
    render(rows: readonly Row[]): string[] {
      const cells = rows.map((row) => columns.map((column) => escapeLine(column.of(row))));
      const titles = columns.map((column) => column.title);
      const first = widths === undefined;
      widths ??= fit(widest([titles, ...cells]), style.width);
      const lines = cells.map((row) => line(row, widths ?? [], columns, style.width !== undefined));
      return first ? [style.bold(line(titles, widths, columns, style.width !== undefined)), ...lines] : lines;
    },
  };
}

function widest(rows: readonly (readonly string[])[]): number[] {
  const count = rows[0]?.length ?? 0;
  return Array.from({ length: count }, (_, i) =>
    rows.reduce((most, row) => Math.max(most, stringWidth(row[i] ?? '')), 0),
  );
}

/** Takes from the widest column, one by one, until all fit. */
function fit(widths: readonly number[], width: number | undefined): number[] {
  const fitted = [...widths];
  if (width === undefined) return fitted;
  const total = () => fitted.reduce((sum, w) => sum + w, 0) + GAP.length * (fitted.length - 1);
  for (let over = total() - width; over > 0; over = total() - width) {
    const most = Math.max(...fitted);
    if (most <= LEAST) break;
    const second = Math.max(LEAST, ...fitted.filter((w) => w < most));
    const widestOne = fitted.indexOf(most);
    fitted[widestOne] =
      Math.max(second, most - over, LEAST) === most ? most - 1 : Math.max(second, most - over);
  }
  return fitted;
}

function line<Row>(
  cells: readonly string[],
  widths: readonly number[],
  columns: readonly Column<Row>[],
  cut: boolean,
): string {
  const padded = cells.map((cell, i) => {
    const width = widths[i] ?? 0;
    const text = cut ? clip(cell, width) : cell;
    const fill = ' '.repeat(Math.max(0, width - stringWidth(text)));
    return columns[i]?.align === 'right' ? fill + text : text + fill;
  });
  return padded.join(GAP).trimEnd();
}

const graphemes = new Intl.Segmenter();

/** At most so wide, with a mark where something is missing. */
export function clip(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const next = used + stringWidth(segment);
    if (next > width - 1) break;
    kept += segment;
    used = next;
  }
  return `${kept}…`;
}
