import { parseArgs } from 'node:util';
import { ColonnadeError } from '@colonnade/contracts';
import type { StoreKind } from './system.ts';

export type FaultOptions = {
  seed: number;
  faults: number;
  store: StoreKind;
  limitMs: number;
  json: boolean;
  help: boolean;
};

export const usage = `npm run faults -- [options]

  --seed N        which faults, in which order; a number of its own each time unless given
  --faults N      how many (200)
  --store KIND    sqlite (default) or mongo
  --minutes N     no new fault after this (30)
  --json          the outcome as JSON on standard output

Exit code 0: no promise was broken. 1: one was, or the run could not be made. 2: wrong options.
`;

/** @throws ColonnadeError `bad_request` */
export function readFaultOptions(args: readonly string[], anySeed: () => number): FaultOptions {
  const { values } = parse(args);
  const store = values.store ?? 'sqlite';
  if (store !== 'sqlite' && store !== 'mongo')
    throw new ColonnadeError('bad_request', '--store: sqlite or mongo');
  return {
    seed: values.seed === undefined ? anySeed() : number('seed', values.seed, 0, 2 ** 31 - 1),
    faults: number('faults', values.faults ?? '200', 1, 100_000),
    limitMs: number('minutes', values.minutes ?? '30', 1, 24 * 60) * 60_000,
    store,
    json: values.json ?? false,
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const options = { seed: text, faults: text, store: text, minutes: text, json: flag, help: flag };
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
  } catch (cause) {
    throw new ColonnadeError('bad_request', (cause as Error).message, { cause });
  }
}

function number(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^[0-9]+$/u.test(text) && value >= min && value <= max) return value;
  throw new ColonnadeError('bad_request', `--${name}: a whole number from ${min} to ${max}`);
}
