const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const CLOSING: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * The text of each element of the top level's `items`, so that one that is hard to parse can be told from the others.
 * @param text valid JSON of an object; nothing is checked here
 */
export function sliceItems(text: string): string[] {
  const items: string[] = [];
  let depth = 0;
  let key = '';
  let last = '';
  let start = 0;
  const take = (end: number) => {
    if (depth !== 2) return;
    const item = text.slice(start, end);
    if (key === 'items' && item.trim() !== '') items.push(item);
    start = end + 1;
  };
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (depth === 1) last = text.slice(i, end + 1);
      i = end;
    } else if (OPENING.has(code)) {
      depth += 1;
      if (depth === 2) start = i + 1;
    } else if (CLOSING.has(code)) {
      take(i);
      depth -= 1;
    } else if (code === COLON && depth === 1) {
      key = JSON.parse(last) as string;
    } else if (code === COMMA) take(i);
  }
  return items;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text.charCodeAt(i) !== QUOTE) i += text.charCodeAt(i) === BACKSLASH ? 2 : 1;
  return i;
}
