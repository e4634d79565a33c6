import type { Parse } from './config.ts';

/** Parsers of environment texts. Their errors say what is allowed and never repeat the text. */

function integer(min: number, max: number, what: string): Parse<number> {
  return (text) => {
    const value = /^\d{1,16}$/u.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      throw new Error(`must be ${what}, a whole number from ${min} to ${max}`);
    }
    return value;
  };
}

/** 0: any free port. */
export const zPort = integer(0, 65_535, 'a port');
/** Milliseconds, at most a day. */
export const zMs = integer(0, 86_400_000, 'milliseconds');
export const zSeconds = integer(0, 366 * 86_400, 'seconds');
export const zCount = integer(0, 1_000_000_000, 'a count');
export const zBytesCount = integer(0, Number.MAX_SAFE_INTEGER, 'bytes');

export const zText: Parse<string> = (text) => {
  if (/[\u0000-\u001f]/u.test(text)) throw new Error('holds a control character');
  return text;
};

export const zPath: Parse<string> = (text) => {
  if (text.includes('\0')) throw new Error('is not a path');
  return text;
};

export const zUrl =
  (...protocols: readonly string[]): Parse<string> =>
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !protocols.includes(url.protocol)) {
      throw new Error(`must be a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')}`);
    }
    return text;
  };

export const zFlag: Parse<boolean> = (text) => {
  if (text === 'true') return true;
  if (text === 'false') return false;
  throw new Error('must be true or false');
};

export function oneOf<const T extends readonly string[]>(values: T): Parse<T[number]> {
  return (text) => {
    if (!values.includes(text)) throw new Error(`must be one of ${values.join(', ')}`);
    return text;
  };
}
