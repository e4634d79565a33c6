import type { Spread } from './measure.ts';

export type Goal = { text: string; met: boolean };

/** One line of the table. */
export type Row = {
  what: string;
  unit: string;
  better: 'lower' | 'higher' | 'neither';
  ours: Spread;
  /** What the machine allows, measured in turns with ours in the same run; a peer counts as one. */
  floor?: Spread;
  floorIs?: string;
  goal?: Goal;
  /** Why the goal is out of reach; told where it is not met. */
  reason?: string;
  note?: string;
};

export type BenchOptions = {
  /** Rounds that count. */
  repeats: number;
  /** Of one trial, milliseconds. */
  trialMs: number;
  /** Sizes that take minutes and gigabytes too. */
  large: boolean;
  report: (text: string) => void;
};

/** Something that is measured, in a file of its own. */
export type Figure = {
  name: string;
  about: string;
  measure(options: BenchOptions): Promise<readonly Row[]>;
};

/** Ours over the floor, of the medians. */
export function ratioOf({ ours, floor }: Pick<Row, 'ours' | 'floor'>): number | undefined {
  return floor === undefined || floor.median === 0 ? undefined : ours.median / floor.median;
}

/** A row with its floor and the goal for their ratio; `called`: in words, before the number. */
export function against(
  row: Omit<Row, 'goal' | 'floor' | 'floorIs'> & { floor: Spread; floorIs: string },
  goal: ({ atMost: number } | { atLeast: number }) & { called?: string },
): Row {
  const ratio = ratioOf(row) ?? Number.NaN;
  const met = 'atMost' in goal ? ratio <= goal.atMost : ratio >= goal.atLeast;
  const bound = 'atMost' in goal ? `≤ ${goal.atMost} ×` : `≥ ${goal.atLeast} ×`;
  return { ...row, goal: { text: goal.called === undefined ? bound : `${goal.called}: ${bound}`, met } };
}
