import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import { parseValue, type Value, ValueError, valueFromYaml } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import type { OptionSpec } from '../table/command.ts';
import { ask, askHiddenTwice, canAsk } from '../terminal/prompt.ts';

const FORMATS = ['json', 'yaml', 'text'] as const;
type Format = (typeof FORMATS)[number];

/** Where a value comes from; for a secret never the command line. */
export const VALUE_OPTIONS = {
  'value-file': { value: 'FILE', help: 'read the value from a file; "-": from standard input' },
  as: {
    value: 'FORMAT',
    choices: FORMATS,
    help: 'what the input is: json, yaml or text (default: text for a secret, else by the file’s name, else json)',
  },
} satisfies Record<string, OptionSpec>;

export const PLAIN_VALUE_OPTION = {
  value: { value: 'JSON', help: 'the value itself; not for secrets, since others see a command line' },
} satisfies Record<string, OptionSpec>;

export const VALUE_DETAILS =
  'The value comes from --value, --value-file or standard input; on a terminal it is asked for, and what is typed of a secret is not shown. One line end at the end of text is left out.';

export type ValueOptions = {
  value?: string | undefined;
  'value-file': string | undefined;
  as: string | undefined;
};

/** @throws ColonnadeError `misconfigured` (nowhere to read from) | `value_invalid` with the place of the fault */
export async function readValue(options: ValueOptions, secret: boolean): Promise<Value> {
  const { value, 'value-file': file } = options;
  if (value !== undefined) {
    if (secret) {
      throw usageError(
        'a secret does not belong on a command line, where others see it: use --value-file or standard input',
      );
    }
    if (file !== undefined) throw usageError('give --value or --value-file, not both');
    return parse(value, formatOf(options, secret), '--value');
  }
  if (file !== undefined && file !== '-') {
    return parse(await readBounded(file), formatOf(options, secret), file);
  }
  if (process.stdin.isTTY !== true || file === '-') {
    return parse(await buffer(process.stdin), formatOf(options, secret), 'standard input');
  }
  if (!canAsk()) throw usageError('there is no value: give --value-file, or standard input');
  if (secret) return parse(await askHiddenTwice('Secret'), formatOf(options, secret), 'what was typed');
  return parse(await ask('Value (JSON): '), formatOf(options, secret), 'what was typed');
}

function formatOf({ as, 'value-file': file }: ValueOptions, secret: boolean): Format {
  if (as !== undefined) return as as Format;
  if (secret) return 'text';
  if (file !== undefined && /\.ya?ml$/iu.test(file)) return 'yaml';
  return file !== undefined && /\.txt$/iu.test(file) ? 'text' : 'json';
}

/** @throws ColonnadeError `value_invalid` | `too_large` */
function parse(input: string | Uint8Array, format: Format, where: string): Value {
  const limits = { maxBytes: LIMITS.httpBodyBytes, maxDepth: LIMITS.valueDepth };
  try {
    if (format === 'yaml') return valueFromYaml(input, limits);
    if (format === 'json') return parseValue(input, limits);
    const text = typeof input === 'string' ? input : new TextDecoder('utf-8', { fatal: true }).decode(input);
    return text.replace(/\r?\n$/u, '');
  } catch (thrown) {
    if (thrown instanceof TypeError) throw new ColonnadeError('value_invalid', `${where} is not UTF-8`);
    if (!(thrown instanceof ValueError)) throw thrown;
    const hint = format === 'json' && thrown.code === 'syntax' ? ' (for plain text: --as text)' : '';
    throw new ColonnadeError('value_invalid', `${where}: ${thrown.message}${hint}`, { cause: thrown });
  }
}

async function readBounded(file: string): Promise<Buffer> {
  const bytes = await readFile(file).catch((thrown: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read: ${thrown.code ?? thrown.message}`);
  });
  if (bytes.length <= LIMITS.httpBodyBytes) return bytes;
  throw new ColonnadeError('too_large', `${file} is over ${LIMITS.httpBodyBytes} bytes`);
}
