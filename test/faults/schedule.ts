import { createRandom, type Random } from '../support/random.ts';

/** `kill` and `restart` and `pause` are of a process, `cut` and `stall` of a link, `lock` of the store's file. */
export type FaultKind = 'kill' | 'restart' | 'pause' | 'cut' | 'stall' | 'lock';
export type Fault = {
  kind: FaultKind;
  /** A part or a link, by its name. */
  target: string;
  /** How long it lasts, milliseconds; of `kill` how long the process stays away, of `restart` nothing. */
  ms: number;
};
/** Faults at the same time, and how long all is well afterwards, milliseconds. */
export type Step = { faults: readonly Fault[]; calmMs: number };

export type Targets = { parts: readonly string[]; links: readonly string[]; lockable: readonly string[] };

/** Times up to these, milliseconds; one in eight lasts up to `LONG` times as long: leases and claims run out. */
const MOST_MS: Readonly<Record<FaultKind, number>> = {
  kill: 400,
  restart: 0,
  pause: 1000,
  cut: 600,
  stall: 1000,
  lock: 800,
};
const LONG = 5;
const CALM_MS = 500;

/**
 * What is done to whom and when: the same for the same seed. Every kind meets every target before one comes again; one
 * step in four has two faults at once, one in sixteen three, each of another target.
 */
export function planFaults(seed: number, count: number, targets: Targets): readonly Step[] {
  const random = createRandom(seed);
  const all = pairsOf(targets);
  const steps: Step[] = [];
  let deck: Pick<Fault, 'kind' | 'target'>[] = [];
  for (let left = count; left > 0; ) {
    const faults: Fault[] = [];
    for (const wanted = Math.min(left, atOnce(random)); faults.length < wanted; ) {
      if (deck.length === 0) deck = shuffle(random, all);
      const at = deck.findIndex(({ target }) => faults.every((fault) => fault.target !== target));
      const [next] = at < 0 ? [random.pick(all)] : deck.splice(at, 1);
      if (next !== undefined) faults.push({ ...next, ms: lastingMs(random, next.kind) });
    }
    steps.push({ faults, calmMs: 50 + random.below(CALM_MS) });
    left -= faults.length;
  }
  return steps;
}

function pairsOf({ parts, links, lockable }: Targets): Pick<Fault, 'kind' | 'target'>[] {
  const pair = (kinds: readonly FaultKind[]) => (target: string) => kinds.map((kind) => ({ kind, target }));
  return [
    ...parts.flatMap(pair(['kill', 'restart', 'pause'])),
    ...links.flatMap(pair(['cut', 'stall'])),
    ...lockable.flatMap(pair(['lock'])),
  ];
}

function atOnce(random: Random): number {
  const dice = random.below(16);
  if (dice === 0) return 3;
  return dice <= 4 ? 2 : 1;
}

function lastingMs(random: Random, kind: FaultKind): number {
  const most = MOST_MS[kind] * (random.chance(1 / 8) ? LONG : 1);
  return most === 0 ? 0 : 20 + random.below(most);
}

function shuffle<T>(random: Random, list: readonly T[]): T[] {
  const left = [...list];
  return Array.from({ length: list.length }, () => left.splice(random.below(left.length), 1)[0] as T);
}
