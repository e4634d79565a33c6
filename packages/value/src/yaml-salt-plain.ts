import { ValueError } from './errors.ts';
import { checkFloat, checkInteger } from './kind.ts';

/** The plain scalar `<<`, which merges where it is a key, and `=`, which is text there; elsewhere Salt refuses both. */
export const MERGE = Symbol('<<');
export const DEFAULT = Symbol('=');

/*
 * The implicit resolvers of PyYAML 6, in the order it tries them. Python's `\s` and `$` do not matter here: a plain
 * scalar begins and ends with neither white space nor a line break.
 */
const BOOL = /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/;
const FLOAT =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const INT =
  /^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$/;
const NULL = /^(?:~|null|Null|NULL|)$/;

/**
 * The value of a plain scalar as Salt's loader (`salt.utils.yaml`) gives it: PyYAML's resolver, with Salt's two changes
 * that `0644` is the decimal 644 (a signed `-0644` stays octal) and that dates are text.
 * @throws ValueError `number_range` past 64 bits, for infinities and NaN; `syntax` for what Salt fails on (`0_`, `0x_`)
 */
export function resolveSaltPlain(
  text: string,
): null | boolean | bigint | number | string | typeof MERGE | typeof DEFAULT {
  if (BOOL.test(text)) return /^(?:y|t|on$)/i.test(text);
  if (FLOAT.test(text)) return checkFloat(floatOf(text.replaceAll('_', '').toLowerCase()));
  if (INT.test(text)) return checkInteger(integerOf(text));
  if (text === '<<') return MERGE;
  if (NULL.test(text)) return null;
  return text === '=' ? DEFAULT : text;
}

function floatOf(text: string): number {
  const [sign, digits] = splitSign(text);
  if (/^\.(?:inf|nan)$/.test(digits)) return Number.NaN;
  return Number(sign) * (digits.includes(':') ? sexagesimalFloat(digits) : Number(digits));
}

/** From the last part to the first, as PyYAML adds them: floats do not add up alike in every order. */
function sexagesimalFloat(text: string): number {
  let base = 1n;
  let sum = 0;
  for (const part of text.split(':').reverse()) {
    sum += Number(part) * Number(base);
    base *= 60n;
  }
  return sum;
}

function integerOf(text: string): bigint {
  const [sign, digits] = splitSign(unpadded(text).replaceAll('_', ''));
  if (digits === '' || digits === '0b' || digits === '0x') throw notAnInteger();
  return sign * magnitudeOf(digits);
}

function magnitudeOf(digits: string): bigint {
  if (digits.startsWith('0b') || digits.startsWith('0x')) return BigInt(digits);
  if (digits.startsWith('0') && digits !== '0') return BigInt(`0o${digits}`);
  if (!digits.includes(':')) return BigInt(digits);
  return digits.split(':').reduce((sum, part) => sum * 60n + BigInt(part), 0n);
}

/** Salt takes the zeros from the front of an unsigned integer, so that `0644` is no octal number. */
function unpadded(text: string): string {
  if (!text.startsWith('0') || /^0[bx]/.test(text)) return text;
  return text.replace(/^0+/, '') || '0';
}

function splitSign(text: string): [1n | -1n, string] {
  const digits = /^[-+]/.test(text) ? text.slice(1) : text;
  return [text.startsWith('-') ? -1n : 1n, digits];
}

function notAnInteger(): ValueError {
  return new ValueError('syntax', 'an integer without digits, which Salt cannot read: quote it');
}
