import { checkFloat, checkInteger } from './kind.ts';

/** A plain (unquoted) scalar that YAML 1.1 and YAML 1.2 do not read alike. */
export const AMBIGUOUS = Symbol('ambiguous');

const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:true|True|TRUE)$/;
const FALSE = /^(?:false|False|FALSE)$/;
// What both versions read as the same number. PyYAML, and so Salt, wants a point and a signed exponent in a float.
const INTEGER = /^(?:[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$/;
const FLOAT = /^(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** What at least one of the two takes for something other than text. Looked at after the patterns above. */
const AMBIGUOUS_PATTERNS = [
  /^(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/,
  /^[-+]?(?:0b[01_]+|[0-9][0-9_]*|0x[0-9a-fA-F_]+|0o[0-7]+)$/,
  /^[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)?$/,
  /^(?:<<|=)$/,
];

/**
 * The value of a plain scalar where YAML 1.2's core schema and the YAML 1.1 that Salt reads (PyYAML's) agree on it,
 * else {@link AMBIGUOUS}. Throws `number_range` for infinities, NaN and integers past 64 bits.
 */
export function resolvePlain(text: string): null | boolean | bigint | number | string | typeof AMBIGUOUS {
  if (NULL.test(text)) return null;
  if (TRUE.test(text)) return true;
  if (FALSE.test(text)) return false;
  if (INTEGER.test(text)) return checkInteger(BigInt(text));
  if (FLOAT.test(text)) return checkFloat(Number(text));
  if (NOT_FINITE.test(text)) return checkFloat(Number.NaN);
  return AMBIGUOUS_PATTERNS.some((pattern) => pattern.test(text)) ? AMBIGUOUS : text;
}

const SAFE_TEXT = /^[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
const RESERVED_WORD = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** Whether a text can be written without quotes and is text to every reader. Errs towards quotes. */
export function isPlainSafe(text: string): boolean {
  return SAFE_TEXT.test(text) && !RESERVED_WORD.test(text);
}
