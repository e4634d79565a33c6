import { type Document, isMap, isScalar, isSeq, parseDocument, Scalar } from 'yaml';
import { errorAt } from './errors.ts';

/** Nodes and characters that all aliases and merges of a text together may add. */
export const ALIAS_BUDGET = 100_000;

/** Not printable, or (CR alone, NEL, LS, PS) a line break to YAML 1.1 or 1.2 and not to the other. */
const REFUSED_CHARACTER = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\r(?!\n)/;

/**
 * The nodes of one YAML document, its scalars still text.
 * @throws ValueError that says where, and never what stands there
 */
export function parseDocumentOf(text: string): Document.Parsed {
  const refused = text.search(REFUSED_CHARACTER);
  if (refused >= 0) throw errorAt('syntax', 'a character that has to be written as an escape', text, refused);
  const document = parseDocument(text, {
    schema: 'failsafe',
    version: '1.2',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) {
    const code = problem.code === 'RESOURCE_EXHAUSTION' ? 'too_deep' : 'syntax';
    // The library's own message may quote the text, which may be a secret.
    throw errorAt(
      code,
      `not valid YAML: ${problem.code.toLowerCase().replaceAll('_', ' ')}`,
      text,
      problem.pos[0],
    );
  }
  checkBrackets(text, document.contents, false);
  return document;
}

/** In brackets, `?x` is a key `x` to libyaml (Salt's parser), and `:x` or `x:,` nothing it can read. */
function checkBrackets(text: string, node: unknown, inBrackets: boolean): void {
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      checkBrackets(text, key, inBrackets || node.flow === true);
      checkBrackets(text, value, inBrackets || node.flow === true);
    }
  } else if (isSeq(node)) {
    for (const item of node.items) checkBrackets(text, item, inBrackets || node.flow === true);
  } else if (inBrackets && isScalar(node) && node.type === Scalar.PLAIN) {
    const after = text.slice(node.range?.[1], (node.range?.[1] ?? 0) + 2);
    if (!/^[?:]|:\?/.test(node.source ?? '') && !/^:[,?[\]{}]/.test(after)) return;
    throw errorAt('syntax', 'a text in brackets with "?" or ":" that has to be quoted', text, offsetOf(node));
  }
}

/** The text of a scalar that is not plain. */
export function quotedText(source: string, scalar: Scalar): string {
  const text = String(scalar.value);
  return endsInsideBlock(source, scalar) ? text.replace(/\n$/, '') : text;
}

/** Whether a block scalar's last line has no line break, which the library adds; YAML 1.2.2 (8.1.1.2) and PyYAML don't. */
function endsInsideBlock(text: string, scalar: Scalar): boolean {
  if (scalar.type !== Scalar.BLOCK_LITERAL && scalar.type !== Scalar.BLOCK_FOLDED) return false;
  if (scalar.range?.[1] !== text.length || text.endsWith('\n')) return false;
  if (text.slice(text.lastIndexOf('\n') + 1).trim() !== '') return true;
  throw errorAt('syntax', 'blanks at the end of a block, with no line break after them', text, text.length);
}

/** Where a node begins; 0 for one that is nowhere. */
export function offsetOf(node: unknown): number {
  return (node as { range?: [number, number, number] | null } | null)?.range?.[0] ?? 0;
}
