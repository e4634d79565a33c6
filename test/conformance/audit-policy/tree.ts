import type { Random } from '../../support/random.ts';

/** A document to be written as JSON or YAML; maps may have a key twice. */
export type Tree =
  | { text: string }
  /** Written as it is; in JSON and YAML the same. */
  | { literal: string }
  | { list: Tree[] }
  | { map: [string, Tree][] };

export function toJson(tree: Tree, random: Random): string {
  const gap = () => random.pick(['', '', ' ', '\n', '\t', ' \r\n ']);
  const write = (node: Tree): string => {
    if ('text' in node) return writeText(node.text, random);
    if ('literal' in node) return node.literal;
    if ('list' in node) return `[${gap()}${node.list.map(write).join(`${gap()},${gap()}`)}${gap()}]`;
    const entries = node.map.map(
      ([key, value]) => `${writeText(key, random)}${gap()}:${gap()}${write(value)}`,
    );
    return `{${gap()}${entries.join(`${gap()},${gap()}`)}${gap()}}`;
  };
  return `${gap()}${write(tree)}${gap()}`;
}

function writeText(text: string, random: Random): string {
  const json = JSON.stringify(text);
  if (!random.chance(0.1)) return json;
  return json.replace(/[a-z/]/u, (c) => (c === '/' ? '\\/' : `\\u00${c.charCodeAt(0).toString(16)}`));
}

/** Plain scalars that are texts to every YAML. */
const PLAIN = /^[a-zA-Z][a-zA-Z0-9_:./-]*[a-zA-Z0-9]$/u;
const WORD = /^(?:y|n|yes|no|on|off|true|false|null|~)$/iu;

export function toYaml(tree: Tree, random: Random): string {
  const head = random.pick(['', '', '', '---\n', '# a policy\n', '\ufeff', '%YAML 1.1\n---\n']);
  const tail = random.pick(['\n', '\n', '', '\n...\n', '\n# the end\n']);
  return `${head}${writeBlock(tree, 0, random)}${tail}`;
}

function writeBlock(tree: Tree, indent: number, random: Random): string {
  const pad = ' '.repeat(indent);
  if ('list' in tree && tree.list.length > 0 && !random.chance(0.2)) {
    return tree.list.map((item) => `${pad}- ${writeBlock(item, indent + 2, random).trimStart()}`).join('\n');
  }
  if ('map' in tree && tree.map.length > 0 && !random.chance(0.1)) {
    return tree.map.map(([key, value]) => `${pad}${writeEntry(key, value, indent, random)}`).join('\n');
  }
  return writeFlow(tree, random);
}

function writeEntry(key: string, value: Tree, indent: number, random: Random): string {
  const start = `${writeScalar(key, random)}:`;
  const comment = random.chance(0.05) ? ' # why' : '';
  const isBlock = ('list' in value && value.list.length > 0) || ('map' in value && value.map.length > 0);
  if (!isBlock) return `${start} ${writeFlow(value, random)}${comment}`;
  // A list may stand as far left as its key.
  const inner = 'list' in value && random.chance(0.5) ? indent : indent + 2;
  const block = writeBlock(value, inner, random);
  const isFlow = block.startsWith('[') || block.startsWith('{');
  return isFlow ? `${start} ${block}${comment}` : `${start}${comment}\n${block}`;
}

function writeFlow(tree: Tree, random: Random): string {
  if ('text' in tree) return writeScalar(tree.text, random);
  if ('literal' in tree) return tree.literal;
  if ('list' in tree) return `[${tree.list.map((item) => writeFlow(item, random)).join(', ')}]`;
  const entries = tree.map.map(([key, value]) => `${writeScalar(key, random)}: ${writeFlow(value, random)}`);
  return `{${entries.join(', ')}}`;
}

function writeScalar(text: string, random: Random): string {
  if (PLAIN.test(text) && !text.includes(': ') && !WORD.test(text) && random.chance(0.7)) return text;
  const simple = /^[\x20-\x7e]*$/u.test(text);
  if (simple && random.chance(0.4)) return `'${text.replaceAll("'", "''")}'`;
  return JSON.stringify(text).replace(/[\u2028\u2029]/gu, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
}
