/**
 * Characters of data that a terminal would act on, or that show text other than it is: C0, DEL, C1, line and paragraph
 * separators, marks of writing direction, and what has no width.
 */
const ACTIVE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** One line of data that is safe to show: every character a terminal would act on is written as an escape. */
export function escapeLine(text: string): string {
  return text.replaceAll(ACTIVE, (c) => SHORT[c] ?? escapeOf(c));
}

/** As escapeLine, but the text keeps its lines. */
export function escapeText(text: string): string {
  return text.split('\n').map(escapeLine).join('\n');
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
}
