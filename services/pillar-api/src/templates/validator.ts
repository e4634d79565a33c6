import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, type Value } from '@colonnade/value';
import { Ajv, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Dialect, fragmentOf, isObject } from './keywords.ts';
import { type PatternNote, watchPatterns } from './pattern-watch.ts';
import { indexSchema, type SchemaIndex } from './schema-index.ts';

/** Answers questions about instances of one schema. Belongs into a thread that can be ended: patterns are the user's. */
export type Validator = {
  index: SchemaIndex;
  /** Whether a value fits the schema at this location. */
  fits(location: string, value: Value): boolean;
  /** What is wrong with an instance, at most a few faults; they name places and keywords and never repeat a value. */
  faultsOf(instance: Value): readonly Fault[];
};

export type Fault = { path: string; message: string };

const MAX_FAULTS = 10;
const DOCUMENT = 'colonnade:template';

/**
 * `ownProperties`: a key `constructor` of an instance is not that of its prototype. No `logger`: it would print parts of
 * schemas. `validateFormats`: formats are annotations, as draft 2020-12 has it. Nothing loads a schema from elsewhere.
 */
const OPTIONS = {
  strict: false,
  logger: false,
  ownProperties: true,
  validateFormats: false,
  unicodeRegExp: true,
  inlineRefs: false,
} as const;

const META: Readonly<Record<Dialect, Ajv | Ajv2020>> = {
  '2020-12': new Ajv2020(OPTIONS),
  '07': new Ajv(OPTIONS),
};

/**
 * Checks that it is a JSON Schema of its dialect (draft 2020-12 unless `$schema` says draft-07), and compiles it.
 * @param note is told which pattern runs
 * @throws ColonnadeError `unprocessable`, with the place of the fault in the schema
 */
export function openSchema(schema: Value, note?: PatternNote): Validator {
  const index = indexSchema(schema);
  const document = toDocument(schema);
  const patterns = note === undefined ? {} : { code: { regExp: watchPatterns(note) } };
  checkMeta(index.dialect, document);
  const ajv = newAjv(index.dialect, patterns);
  const compiled = new Map<string, (data: unknown) => boolean>();
  const compile = (location: string) => {
    const known = compiled.get(location) ?? ajv.compile<unknown>({ $ref: DOCUMENT + fragmentOf(location) });
    compiled.set(location, known);
    return known;
  };
  try {
    ajv.addSchema(document, DOCUMENT);
    compile('');
  } catch (thrown) {
    // The library's text may hold a pattern of the schema, which is the caller's own.
    const why = thrown instanceof Error ? thrown.message.slice(0, 200) : 'it cannot be compiled';
    throw new ColonnadeError('unprocessable', `schema: ${why}`, { field: 'schema' });
  }
  return {
    index,
    fits: (location, value) => compile(location)(toInstance(value)),
    faultsOf(instance) {
      const whole = newAjv(index.dialect, { ...patterns, allErrors: true });
      const validate = whole.addSchema(document, DOCUMENT).compile<unknown>({ $ref: `${DOCUMENT}#` });
      if (validate(toInstance(instance))) return [];
      return (validate.errors ?? []).slice(0, MAX_FAULTS).map(({ instancePath, message, keyword }) => ({
        ...{ path: instancePath, message: message ?? `breaks ${keyword}` },
      }));
    },
  };
}

function newAjv(dialect: Dialect, more: Pick<Options, 'allErrors' | 'code'>): Ajv | Ajv2020 {
  const options = { ...OPTIONS, meta: false, validateSchema: false, addUsedSchema: false, ...more };
  return dialect === '07' ? new Ajv(options) : new Ajv2020(options);
}

function checkMeta(dialect: Dialect, document: object | boolean): void {
  const meta = META[dialect];
  if (meta.validateSchema(document) === true) return;
  const [fault] = meta.errors ?? [];
  const where = fault?.instancePath ? ` at ${fault.instancePath.slice(0, 200)}` : '';
  throw new ColonnadeError('unprocessable', `schema${where}: ${fault?.message ?? 'is no JSON Schema'}`, {
    field: 'schema',
  });
}

/** Without `$id`: every reference begins with "#", so nothing hangs on it, and it could stand in for another document. */
function toDocument(schema: Value): object | boolean {
  if (typeof schema === 'boolean') return schema;
  const document = toInstance(schema) as Record<string, unknown>;
  if (isObject(schema)) {
    delete document.$id;
    delete document.$schema;
  }
  return document;
}

/**
 * As the validator takes it. It knows one kind of number, so that `1.0` is an integer, as JSON Schema has it, and
 * integers beyond 2^53 are compared as the nearest double. Not by `toPlain`, which makes text of those.
 */
function toInstance(value: Value): unknown {
  return JSON.parse(canonicalText(value)) as unknown;
}
