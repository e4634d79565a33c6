import { TextDecoder } from 'node:util';
import { errorAt, ValueError } from './errors.ts';
import type { Limits } from './value.ts';

/**
 * The text of an input: within `maxBytes`, strict UTF-8, no lone surrogate. A byte order mark is kept, for the
 * reader to refuse. Throws `ValueError`: `too_large`, `invalid_utf8` or `lone_surrogate`.
 */
export function readText(input: string | Uint8Array, limits: Limits | undefined): string {
  const maxBytes = limits?.maxBytes ?? Number.POSITIVE_INFINITY;
  if (exceeds(input, maxBytes)) {
    throw new ValueError('too_large', `the text is larger than ${maxBytes} bytes`);
  }
  if (typeof input !== 'string') return decodeUtf8(input);
  if (!input.isWellFormed()) {
    throw errorAt('lone_surrogate', 'a lone surrogate', input, findLoneSurrogate(input));
  }
  return input;
}

function exceeds(input: string | Uint8Array, maxBytes: number): boolean {
  if (typeof input !== 'string') return input.byteLength > maxBytes;
  // A UTF-16 unit is one to three bytes of UTF-8, so most texts need no counting.
  if (input.length > maxBytes) return true;
  return input.length * 3 > maxBytes && Buffer.byteLength(input, 'utf8') > maxBytes;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strictDecoder().decode(bytes);
  } catch {
    const valid = validPrefix(bytes);
    throw errorAt('invalid_utf8', 'not valid UTF-8', valid, valid.length);
  }
}

function strictDecoder(): TextDecoder {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
}

/** The text before the first bad byte. The decoder does not say where it stopped, so the place is searched. */
function validPrefix(bytes: Uint8Array): string {
  let good = 0;
  let bad = bytes.byteLength + 1;
  let text = '';
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    try {
      text = strictDecoder().decode(bytes.subarray(0, middle), { stream: true });
      good = middle;
    } catch {
      bad = middle;
    }
  }
  return text;
}

function findLoneSurrogate(text: string): number {
  return text.search(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
}
