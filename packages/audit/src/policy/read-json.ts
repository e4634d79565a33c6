import { parseValue, ValueError } from '@colonnade/value';
import { MAX_DEPTH, type Node, policyError } from './node.ts';

const TOKEN = /[\t\n\r ]*(?:("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)|([[\]{},:]|true|false|null))/gy;

/**
 * Reads JSON as Go does: one key may stand in a map several times, which the decoder has to see, and half a surrogate
 * pair becomes U+FFFD. JSON.parse says whether the text is JSON at all; its tree is dropped.
 * @throws ColonnadeError `misconfigured` with the place of the fault
 */
export function readJson(text: string): Node {
  try {
    JSON.parse(text);
  } catch (cause) {
    throw policyError('not valid JSON', placeOfFault(text), cause);
  }
  const reader = createReader(text);
  return readValue(reader, reader.next(), 0);
}

/** JSON.parse does not always say where; our own parser does, unless a repeated key stops it before. */
function placeOfFault(text: string): string | undefined {
  try {
    parseValue(text, { maxDepth: MAX_DEPTH });
  } catch (thrown) {
    if (thrown instanceof ValueError && thrown.code === 'syntax') {
      return `line ${thrown.line} column ${thrown.column}`;
    }
  }
  return undefined;
}

/** One token of a text that is known to be JSON. */
type Token = { text: string; kind: 'string' | 'number' | 'other' };
type Reader = { next(): Token };

function createReader(text: string): Reader {
  const pattern = new RegExp(TOKEN);
  return {
    next() {
      const [, string, number, other = ''] = pattern.exec(text) ?? [];
      if (string !== undefined) return { text: string, kind: 'string' };
      if (number !== undefined) return { text: number, kind: 'number' };
      return { text: other, kind: 'other' };
    },
  };
}

function readValue(reader: Reader, token: Token, depth: number): Node {
  if (depth > MAX_DEPTH) throw policyError(`more than ${MAX_DEPTH} levels`);
  if (token.kind === 'string') return { kind: 'string', value: textOf(token) };
  if (token.kind === 'number') return { kind: 'number', text: token.text };
  if (token.text === '{') return readMap(reader, depth);
  if (token.text === '[') return readList(reader, depth);
  return token.text === 'null' ? { kind: 'null' } : { kind: 'bool', value: token.text === 'true' };
}

function readList(reader: Reader, depth: number): Node {
  const items: Node[] = [];
  for (let token = reader.next(); token.text !== ']' || token.kind === 'string'; token = reader.next()) {
    if (token.kind === 'other' && token.text === ',') continue;
    items.push(readValue(reader, token, depth + 1));
  }
  return { kind: 'list', items };
}

function readMap(reader: Reader, depth: number): Node {
  const entries: (readonly [string, Node])[] = [];
  for (let token = reader.next(); token.kind === 'string' || token.text !== '}'; token = reader.next()) {
    if (token.kind === 'other') continue;
    reader.next();
    entries.push([textOf(token), readValue(reader, reader.next(), depth + 1)]);
  }
  return { kind: 'map', entries };
}

function textOf(token: Token): string {
  return (JSON.parse(token.text) as string).toWellFormed();
}
