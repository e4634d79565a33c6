import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { ColonnadeError } from '@colonnade/contracts';
import { parseValue, type Value, ValueError, type ValueObject, valueFromYaml } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import { readPrivate } from '../profile/config-file.ts';
import { asObject } from './view.ts';

/** Pillars by name, plain and secret; the secret ones come from a file that only its owner can read. */
export const NAMED_VALUES_OPTIONS = {
  values: {
    value: 'FILE',
    help: 'plain values: an object of name to value, YAML or JSON; "-": standard input',
  },
  secrets: { value: 'FILE', help: 'secret values, the same way, from a file of mode 0600' },
} as const;

/** @throws ColonnadeError `misconfigured` | `value_invalid` with the place of the fault */
export async function readNamedValues(options: {
  values: string | undefined;
  secrets: string | undefined;
}): Promise<ValueObject[]> {
  const plain =
    options.values === undefined ? {} : await readObject(options.values, await readText(options.values));
  const secretText =
    options.secrets === undefined ? undefined : readPrivate(options.secrets, 'the file of secrets');
  if (options.secrets !== undefined && secretText === undefined)
    throw usageError(`${options.secrets} does not exist`);
  const secret = secretText === undefined ? {} : await readObject(options.secrets ?? '', secretText);
  const rows = (found: ValueObject, is_secret: boolean) =>
    Object.entries(found).map(([name, value]) => ({ name, value, is_secret }));
  return [...rows(plain, false), ...rows(secret, true)];
}

/** A document from a file or standard input, YAML unless its name says JSON. */
export async function readDocument(file: string): Promise<Value> {
  return parse(file, await readText(file));
}

async function readText(file: string): Promise<string | Buffer> {
  if (file === '-') return await buffer(process.stdin);
  return await readFile(file).catch((thrown: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read: ${thrown.code ?? thrown.message}`);
  });
}

async function readObject(file: string, text: string | Buffer): Promise<ValueObject> {
  const value = parse(file, text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ColonnadeError('value_invalid', `${file} is no object of name to value`);
  }
  return asObject(value);
}

function parse(file: string, text: string | Buffer): Value {
  try {
    return /\.json$/iu.test(file) ? parseValue(text) : valueFromYaml(text);
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    throw new ColonnadeError('value_invalid', `${file}: ${thrown.message}`, { cause: thrown });
  }
}
