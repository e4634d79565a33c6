import { createHash } from 'node:crypto';
import { ColonnadeError, decodeTree, type ErrorCode, LIMITS } from '@colonnade/contracts';
import { parseValue, type Value, ValueError, type ValueErrorCode } from '@colonnade/value';
import type { z } from 'zod';

/** A parsed body and the SHA-256 of its bytes, hex. */
export type ParsedBody = { tree: Value; sha256: string };

/** Not JSON at all: 400. JSON that holds what cannot be kept: 422. */
const CODES: Readonly<Record<ValueErrorCode, ErrorCode>> = {
  syntax: 'bad_request',
  duplicate_key: 'bad_request',
  invalid_utf8: 'bad_request',
  too_large: 'too_large',
  too_deep: 'value_invalid',
  number_range: 'value_invalid',
  lone_surrogate: 'value_invalid',
  not_a_value: 'value_invalid',
};

/**
 * Parses the bytes of a request body strictly; integers, floats and text stay what they are.
 * @returns undefined for no bytes: whether a body is needed is the route's business
 * @throws ColonnadeError `bad_request`, `too_large`, `value_invalid`, with the place of the fault in its cause
 */
export function parseBody(bytes: Buffer): ParsedBody | undefined {
  if (bytes.length === 0) return undefined;
  try {
    const tree = parseValue(bytes, { maxDepth: LIMITS.messageDepth, maxBytes: LIMITS.httpBodyBytes });
    return { tree, sha256: createHash('sha256').update(bytes).digest('hex') };
  } catch (thrown) {
    throw fromValueError(thrown, 'the body is not acceptable JSON');
  }
}

/** @throws ColonnadeError for a ValueError, anything else as it is */
export function fromValueError(thrown: unknown, what: string, field?: string): unknown {
  if (!(thrown instanceof ValueError)) return thrown;
  const options = field === undefined ? { cause: thrown } : { cause: thrown, field };
  return new ColonnadeError(CODES[thrown.code], `${what}: ${thrown.message}`, options);
}

/** Decodes what was parsed. @throws ColonnadeError `unprocessable` naming the faulty fields */
export function decodeInput<S extends z.ZodType>(schema: S, tree: unknown): z.output<S> {
  try {
    return decodeTree(schema, tree);
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'bad_request') throw thrown;
    const { message, field } = thrown;
    throw new ColonnadeError('unprocessable', message, field === undefined ? {} : { field });
  }
}

/** True for `application/json`, with no charset or with UTF-8, and no content coding. */
export function isJsonBody(contentType: string | undefined, contentEncoding: string | undefined): boolean {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/iu.exec(contentType ?? '')?.[1];
  if (charset !== undefined && !/^utf-?8$/iu.test(charset)) return false;
  return contentEncoding === undefined || contentEncoding === 'identity';
}
