import { Document, Pair, Scalar, type ScalarTag, type Tags, YAMLMap, YAMLSeq } from 'yaml';
import { checkValue } from './check.ts';
import { floatText } from './float-text.ts';
import type { Value } from './value.ts';
import { isPlainSafe } from './yaml-plain.ts';

const TEXT_TAG = 'tag:yaml.org,2002:str';
/** Characters YAML 1.1 calls line breaks or not printable, and those a person would not see. */
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;
/** What a literal block can hold without escapes and without an indentation indicator. */
const LITERAL_BLOCK = /^[\x21-\x7e][\x20-\x7e]*(?:\n[\x20-\x7e]*)*[\x21-\x7e]\n?$/;

/** The schema's tags with our own for text before them: scalars come with their text finished, but for blocks. */
function finishedScalars(tags: Tags): Tags {
  const library = tags.find((tag) => typeof tag === 'object' && tag.tag === TEXT_TAG) as ScalarTag;
  const finished: ScalarTag = {
    ...library,
    stringify: (item, ...rest) =>
      item.type === Scalar.BLOCK_LITERAL ? (library.stringify?.(item, ...rest) ?? '') : String(item.value),
  };
  return [finished, ...tags];
}

/**
 * YAML that a reader of YAML 1.1 (Salt's PyYAML) and one of YAML 1.2 read as the same value. Every text that either
 * could take for another type is in quotes (`"yes"`, `"0644"`, `"1:30"`, `"2024-01-01"`), floats keep their point
 * (`1.0`, `1.0e+16`), texts of several lines become literal blocks. Keys keep the order of the object. Throws
 * `ValueError` for what is not a value or is nested deeper than the default limit.
 */
export function valueToYaml(value: Value): string {
  checkValue(value);
  const document = new Document(null, {
    schema: 'failsafe',
    customTags: finishedScalars,
  });
  document.contents = buildNode(value, false) as typeof document.contents;
  return document.toString({ lineWidth: 0 });
}

function buildNode(value: Value, nested: boolean): Scalar<string> | YAMLMap | YAMLSeq {
  if (Array.isArray(value)) {
    const sequence = new YAMLSeq();
    for (const item of value) sequence.add(buildNode(item, true));
    return sequence;
  }
  if (typeof value === 'object' && value !== null) {
    const map = new YAMLMap();
    // Pushed, not added: add() looks for the key among all before it.
    for (const [key, item] of Object.entries(value)) {
      map.items.push(new Pair(new Scalar(textOf(key)), buildNode(item, true)));
    }
    return map;
  }
  if (nested && typeof value === 'string' && LITERAL_BLOCK.test(value) && value.includes('\n')) {
    const block = new Scalar(value);
    block.type = Scalar.BLOCK_LITERAL;
    return block;
  }
  return new Scalar(textOf(value));
}

function textOf(value: null | boolean | bigint | number | string): string {
  if (typeof value === 'string') return isPlainSafe(value) ? value : quote(value);
  // PyYAML takes a float without a point for text.
  if (typeof value === 'number') return floatText(value).replace(/^(-?\d)e/, '$1.0e');
  return String(value);
}

// YAML's double quotes know every escape of JSON.
function quote(text: string): string {
  return JSON.stringify(text).replace(
    UNPRINTABLE,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
