import { errorAt, type ValueErrorCode } from './errors.ts';
import { readText } from './text.ts';
import { depthLimit, emptyObject, fitsInt64, type Limits, type Value, type ValueObject } from './value.ts';

interface Reader {
  readonly text: string;
  readonly maxDepth: number;
  at: number;
  depth: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** As many decimal digits as a double always holds exactly. */
const EXACT_DIGITS = 15;
/** A sign and the 19 digits of the largest 64-bit integer. */
const INT64_TEXT = 20;

/**
 * Reads one JSON value (RFC 8259, nothing more). Integers become `bigint`, anything with a fraction or an exponent
 * `number`. Refuses with a `ValueError` that says where: duplicate keys, integers past 64 bits, floats past the
 * largest double, lone surrogates (also escaped ones), a byte order mark, invalid UTF-8, and what `limits` forbid.
 */
export function parseValue(input: string | Uint8Array, limits?: Limits): Value {
  const text = readText(input, limits);
  const reader: Reader = { text, maxDepth: depthLimit(limits), at: 0, depth: 0 };
  const value = readValue(reader, skipSpace(reader));
  skipSpace(reader);
  if (reader.at < text.length) throw fail(reader, 'syntax', 'more text after the value');
  return value;
}

/** Moves to the next character that is not white space and returns it; NaN at the end. */
function skipSpace(reader: Reader): number {
  const text = reader.text;
  let at = reader.at;
  let char = text.charCodeAt(at);
  while (char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09) char = text.charCodeAt(++at);
  reader.at = at;
  return char;
}

function readValue(reader: Reader, char: number): Value {
  switch (char) {
    case QUOTE:
      return readString(reader);
    case 0x7b:
      return readObject(reader);
    case 0x5b:
      return readArray(reader);
    case 0x74:
      return readWord(reader, 'true', true);
    case 0x66:
      return readWord(reader, 'false', false);
    case 0x6e:
      return readWord(reader, 'null', null);
    default:
      if (char === MINUS || isDigit(char)) return readNumber(reader);
      throw unexpected(reader);
  }
}

function readWord<T extends boolean | null>(reader: Reader, word: string, value: T): T {
  if (!reader.text.startsWith(word, reader.at)) throw fail(reader, 'syntax', 'an unknown word');
  reader.at += word.length;
  return value;
}

function readObject(reader: Reader): ValueObject {
  enter(reader);
  const object = emptyObject();
  let char = skipSpace(reader);
  if (char === 0x7d) return leave(reader, object);
  for (;;) {
    if (char !== QUOTE) throw unexpected(reader);
    const keyAt = reader.at;
    const key = readString(reader);
    if (object[key] !== undefined) throw fail(reader, 'duplicate_key', 'a key that is there already', keyAt);
    if (skipSpace(reader) !== COLON) throw unexpected(reader);
    reader.at++;
    object[key] = readValue(reader, skipSpace(reader));
    char = skipSpace(reader);
    if (char === 0x7d) return leave(reader, object);
    if (char !== COMMA) throw unexpected(reader);
    reader.at++;
    char = skipSpace(reader);
  }
}

function readArray(reader: Reader): Value[] {
  enter(reader);
  const array: Value[] = [];
  let char = skipSpace(reader);
  if (char === 0x5d) return leave(reader, array);
  for (;;) {
    array.push(readValue(reader, char));
    char = skipSpace(reader);
    if (char === 0x5d) return leave(reader, array);
    if (char !== COMMA) throw unexpected(reader);
    reader.at++;
    char = skipSpace(reader);
  }
}

function enter(reader: Reader): void {
  if (reader.depth >= reader.maxDepth) {
    throw fail(reader, 'too_deep', `nested deeper than ${reader.maxDepth}`);
  }
  reader.depth++;
  reader.at++;
}

function leave<T>(reader: Reader, container: T): T {
  reader.depth--;
  reader.at++;
  return container;
}

function readString(reader: Reader): string {
  const text = reader.text;
  const start = reader.at + 1;
  let at = start;
  for (;;) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      reader.at = at + 1;
      return text.slice(start, at);
    }
    // Written so that NaN, the end of the text, also leaves the loop.
    if (!(char >= 0x20) || char === BACKSLASH) break;
    at++;
  }
  return readEscaped(reader, start, at);
}

/** The slow path: the rest of a string from the first character that is not simply taken over. */
function readEscaped(reader: Reader, start: number, firstSpecial: number): string {
  const text = reader.text;
  let from = start;
  let at = firstSpecial;
  let result = '';
  for (;;) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      reader.at = at + 1;
      return result + text.slice(from, at);
    }
    if (char === BACKSLASH) {
      result += text.slice(from, at);
      reader.at = at;
      result += readEscape(reader);
      from = at = reader.at;
    } else if (char >= 0x20) {
      at++;
    } else {
      const reason =
        at < text.length ? 'a control character inside a string' : 'the text ends inside a string';
      throw fail(reader, 'syntax', reason, at);
    }
  }
}

function readEscape(reader: Reader): string {
  const { text, at } = reader;
  const letter = text[at + 1] ?? '';
  if (letter === 'u') return readUnicodeEscape(reader);
  const index = '"\\/bfnrt'.indexOf(letter);
  if (letter === '' || index < 0) throw fail(reader, 'syntax', 'an unknown escape');
  reader.at = at + 2;
  return '"\\/\b\f\n\r\t'.charAt(index);
}

function readUnicodeEscape(reader: Reader): string {
  const at = reader.at;
  const unit = readHex(reader, at);
  reader.at = at + 6;
  if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
  if (unit < 0xdc00 && reader.text.startsWith('\\u', at + 6)) {
    const low = readHex(reader, at + 6);
    reader.at = at + 12;
    if (low >= 0xdc00 && low <= 0xdfff) return String.fromCharCode(unit, low);
  }
  throw fail(reader, 'lone_surrogate', 'an escaped lone surrogate', at);
}

function readHex(reader: Reader, at: number): number {
  const digits = reader.text.slice(at + 2, at + 6);
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw fail(reader, 'syntax', 'an escape without four hex digits', at);
  return Number.parseInt(digits, 16);
}

function readNumber(reader: Reader): bigint | number {
  const text = reader.text;
  const start = reader.at;
  const negative = text.charCodeAt(start) === MINUS;
  const first = negative ? start + 1 : start;
  let at = first;
  let whole = 0;
  let char = text.charCodeAt(at);
  while (isDigit(char)) {
    whole = whole * 10 + (char - ZERO);
    char = text.charCodeAt(++at);
  }
  if (at === first) throw fail(reader, 'syntax', 'a sign without a number', at);
  if (at > first + 1 && text.charCodeAt(first) === ZERO) {
    throw fail(reader, 'syntax', 'a number with a leading zero', first);
  }
  if (char === 0x2e || char === 0x65 || char === 0x45) return readFloat(reader, at);
  reader.at = at;
  if (at - first <= EXACT_DIGITS) return BigInt(negative ? -whole : whole);
  const integer = at - start <= INT64_TEXT ? BigInt(text.slice(start, at)) : undefined;
  if (integer !== undefined && fitsInt64(integer)) return integer;
  throw fail(reader, 'number_range', 'an integer past 64 bits', start);
}

/** A float whose sign and whole part end at `wholeEnd`. */
function readFloat(reader: Reader, wholeEnd: number): number {
  const { text, at: start } = reader;
  let at = wholeEnd;
  if (text.charCodeAt(at) === 0x2e) at = skipDigits(reader, at + 1);
  const char = text.charCodeAt(at);
  if (char === 0x65 || char === 0x45) {
    const sign = text.charCodeAt(at + 1);
    at = skipDigits(reader, sign === 0x2b || sign === MINUS ? at + 2 : at + 1);
  }
  const float = Number(text.slice(start, at));
  if (!Number.isFinite(float)) throw fail(reader, 'number_range', 'a number too large for a double', start);
  reader.at = at;
  return float;
}

function skipDigits(reader: Reader, from: number): number {
  let at = from;
  while (isDigit(reader.text.charCodeAt(at))) at++;
  if (at === from) throw fail(reader, 'syntax', 'a number without the digits it needs', at);
  return at;
}

function isDigit(char: number): boolean {
  return char >= ZERO && char <= NINE;
}

function unexpected(reader: Reader): Error {
  const reason = reader.at < reader.text.length ? 'an unexpected character' : 'the text ends too early';
  return fail(reader, 'syntax', reason);
}

function fail(reader: Reader, code: ValueErrorCode, reason: string, offset = reader.at): Error {
  return errorAt(code, reason, reader.text, offset);
}
