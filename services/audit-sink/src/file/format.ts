import type { ParsedEvent } from '@colonnade/audit-log';
import { canonicalText, parseValue } from '@colonnade/value';
import { legacyLine } from './legacy.ts';

export const LOG_FORMATS = ['json', 'legacy'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/**
 * The line of an event, without its line end. JSON: the bytes that came, unless they would be more than one line to some reader;
 * U+2028 and U+2029 are escaped, as Go's encoder does for Kubernetes.
 */
export function lineOf(format: LogFormat, payload: Uint8Array, text: string, event: ParsedEvent): Uint8Array {
  if (format === 'legacy') return Buffer.from(legacyLine(event));
  if (!/[\n\r\u2028\u2029]/u.test(text)) return payload;
  // Valid JSON has a raw line end only between its tokens.
  const single = /[\n\r]/u.test(text) ? canonicalText(parseValue(text, { maxDepth: 512 })) : text;
  return Buffer.from(single.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029'));
}
