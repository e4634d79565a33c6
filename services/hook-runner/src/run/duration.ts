/** Milliseconds of each unit, under every name it may have. */
const UNITS: ReadonlyMap<string, number> = new Map(
  (
    [
      // The names of seed 002, and the short forms that Rudder's own parser knows beside them.
      [0.001, ['micro', 'micros', 'microsecond', 'microseconds', 'µs', 'μs']],
      [1, ['ms', 'milli', 'millis', 'millisecond', 'milliseconds']],
      [1000, ['s', 'sec', 'secs', 'second', 'seconds']],
      [60_000, ['m', 'min', 'mins', 'minute', 'minutes']],
      [3_600_000, ['h', 'hr', 'hrs', 'hour', 'hours']],
    ] as const
  ).flatMap(([ms, names]) => names.map((name): [string, number] => [name, ms])),
);

/** What a timer of Node.js can hold; beyond it, it would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Reads a length of time as the head of a hook states it: an integer and a unit, with or without blanks between them
 * (seed 002). Case counts, as in Rudder.
 * @returns milliseconds, undefined for anything else, for nothing at all and for more than 24 days
 */
export function parseDuration(text: string): number | undefined {
  const [, length, unit] = /^\s*(\d{1,15})\s*([a-zµμ]+)\s*$/u.exec(text) ?? [];
  const unitMs = UNITS.get(unit ?? '');
  if (length === undefined || unitMs === undefined) return undefined;
  const ms = Number(length) * unitMs;
  return ms > 0 && ms <= MAX_MS ? ms : undefined;
}
