const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols, and the ASCII space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** The text as Go's `%q` writes it. */
export function goQuote(text: string): string {
  let out = '"';
  for (const character of text.toWellFormed()) out += SHORT[character] ?? quoteOne(character);
  return `${out}"`;
}

function quoteOne(character: string): string {
  if (PRINTABLE.test(character)) return character;
  const code = character.codePointAt(0) ?? 0xfffd;
  const hex = (digits: number) => code.toString(16).padStart(digits, '0');
  if (code < 0x20 || code === 0x7f) return `\\x${hex(2)}`;
  return code > 0xffff ? `\\U${hex(8)}` : `\\u${hex(4)}`;
}
