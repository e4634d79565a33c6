import { type Value, ValueError, type ValueObject, valueFromSaltYaml } from '@colonnade/value';
import type { Problem } from './problem.ts';

/** Characters by which Jinja takes a text for its own. */
const JINJA = /\{[{%#]/u;
/** What renders a file by default, with or without saying so. */
const JINJA_YAML = /^#!\s*jinja\s*\|\s*yaml\s*$/iu;
const YAML = /^#!\s*yaml\s*$/iu;

/**
 * The mapping in an SLS file that needs no rendering. An empty file is an empty mapping.
 * @returns the problems instead, none of which repeats what stands in the file
 */
export function readSls(file: string, text: string): ValueObject | Problem[] {
  const [first = ''] = text.split('\n', 1);
  const isPlainYaml = YAML.test(first);
  if (first.startsWith('#!') && !isPlainYaml && !JINJA_YAML.test(first)) {
    return [{ file, line: 1, reason: 'a renderer other than yaml: render it with Salt first' }];
  }
  const jinja = isPlainYaml ? [] : jinjaIn(file, text);
  if (jinja.length > 0) return jinja;
  try {
    const value = valueFromSaltYaml(text);
    if (value === null) return {};
    return isMapping(value) ? value : [{ file, line: 1, reason: 'not a mapping' }];
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    const line = thrown.line === undefined ? {} : { line: thrown.line };
    return [{ file, ...line, reason: thrown.message }];
  }
}

function jinjaIn(file: string, text: string): Problem[] {
  const lines = text.split('\n').flatMap((line, i) => (JINJA.test(line) ? [i + 1] : []));
  const reason = 'Jinja, which is not rendered here: render the file with Salt, or begin it with #!yaml';
  return lines.map((line) => ({ file, line, reason }));
}

export function isMapping(value: Value | undefined): value is ValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** As Salt's `smart` strategy for YAML: mappings key by key, everything else as the later one has it. */
export function mergeValues(earlier: Value | undefined, later: Value): Value {
  if (!isMapping(earlier) || !isMapping(later)) return later;
  const merged = Object.setPrototypeOf({ ...earlier }, null) as ValueObject;
  for (const [key, value] of Object.entries(later)) {
    define(merged, key, mergeValues(Object.hasOwn(merged, key) ? merged[key] : undefined, value));
  }
  return merged;
}

/** `__proto__` is a key like any other. */
function define(object: ValueObject, key: string, value: Value): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}
