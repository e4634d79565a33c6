import { parseArgs } from 'node:util';
import { ColonnadeError } from '@colonnade/contracts';

export const usage = (
  figures: readonly { name: string; about: string }[],
) => `npm run bench -- [figure …] [options]

${figures.map(({ name, about }) => `  ${name.padEnd(14)}  ${about}`).join('\n')}

  --repeats N   rounds that count (5); each round runs ours and the floor in turns
  --ms N        of one trial (2000)
  --large       also the sizes that take minutes and gigabytes
  --markdown    prints the table of the README, without the comparison with the last run
  --kept        measures nothing: prints what is kept (of the figures named, or all of them)
  --json FILE   where the figures are kept (.colonnade/bench.json); what is there is compared with
`;

/** @throws ColonnadeError `bad_request` */
export function readBenchOptions(args: readonly string[], known: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const options = {
    ...{ repeats: text, ms: text, large: flag, json: text, help: flag, markdown: flag, kept: flag },
  };
  let parsed: ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (cause) {
    throw new ColonnadeError('bad_request', (cause as Error).message, { cause });
  }
  const { values, positionals } = parsed;
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new ColonnadeError('bad_request', `no such figure: ${unknown.join(', ')}`);
  return {
    names: positionals.length > 0 ? positionals : known,
    repeats: wholeNumber('repeats', values.repeats ?? '5', 100),
    trialMs: wholeNumber('ms', values.ms ?? '2000', 600_000),
    large: values.large ?? false,
    file: values.json,
    help: values.help ?? false,
    markdown: values.markdown ?? false,
    kept: values.kept ?? false,
  };
}

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^[1-9][0-9]*$/u.test(text) && value <= max) return value;
  throw new ColonnadeError('bad_request', `--${name}: a whole number from 1 to ${max}`);
}
