import { ColonnadeError } from '@colonnade/contracts';

/** A parsed text before it has a type. Maps keep every entry, also those with one key, in their order. */
export type Node =
  | { kind: 'null' }
  | { kind: 'bool'; value: boolean }
  /** As written, in JSON's notation. */
  | { kind: 'number'; text: string }
  | { kind: 'string'; value: string }
  | { kind: 'list'; items: readonly Node[] }
  | { kind: 'map'; entries: readonly (readonly [key: string, value: Node])[] };

/** Levels of lists and maps in a policy file; far more than a policy has, far less than the stack bears. */
export const MAX_DEPTH = 500;

/** The error of a policy that is refused. @param place a path such as `rules[0].level`, or a line and column */
export function policyError(why: string, place?: string, cause?: unknown): ColonnadeError {
  return new ColonnadeError('misconfigured', place === undefined ? why : `${place}: ${why}`, {
    ...(place === undefined ? {} : { field: place }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** A text in double quotes, with what does not print escaped. */
export function quote(text: string): string {
  return JSON.stringify(text.toWellFormed()).replace(
    /[\u007f-\u00a0\u00ad\u2028\u2029\ufeff]/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
