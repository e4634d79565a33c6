import { z } from 'zod';
import { int } from '../codec.ts';
import { ERROR_CODES } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { secretField } from './secret-fields.ts';

/** Media type of every error (RFC 9457). */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** The problem document of every error answer; `code` is stable, `field` and the position are there when known. */
export const zProblem = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: int({ min: 400, max: 599 }),
  detail: z.string(),
  /** What a hook wrote that refused it. */
  said: secretField(z.string()).optional(),
  code: z.enum(ERROR_CODES),
  /** `urn:uuid:` and the id of the request, which is also its Audit-ID. */
  instance: z.string(),
  field: z.string().optional(),
  /** Place of the fault in the body's text: UTF-16 units from its start, line and column from 1. */
  position: z.strictObject({ offset: int(), line: int(), column: int() }).optional(),
});
export type Problem = z.infer<typeof zProblem>;

/** RFC 3339 in UTC with milliseconds. A day that no month has is taken for none, not for one of the next month. */
export const zTime = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u, 'must be an RFC 3339 time in UTC')
  .refine((text) => isTime(text), 'there is no such time');

function isTime(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString() === text;
}

const RFC_3339 =
  /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/u;
const NO_TIME = 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z';

/** A time as others write it: RFC 3339, with or without fractions, in any offset. `Date.parse` reads it, to the millisecond. */
export const zTimeAsked = z
  .string(NO_TIME)
  .regex(RFC_3339, { error: NO_TIME, abort: true })
  .refine((text) => isTime(`${text.slice(0, 10)}T00:00:00.000Z`), 'there is no such time');

/** Where the next page begins; opaque to clients. */
export const zCursor = z.string().min(1, 'cursor is empty').max(1024, 'cursor is too long');

const limitText = `must be 1–${LIMITS.pageRows}`;
export const zPageLimit = int({ min: 1, max: LIMITS.pageRows });
/** As zPageLimit, from the text of a query string. */
export const zPageLimitText = z
  .string()
  .regex(/^[1-9][0-9]{0,3}$/u, { error: limitText, abort: true })
  .refine((text) => Number(text) <= LIMITS.pageRows, limitText);

/** Query string of a list. */
export const zPageQuery = z.strictObject({ limit: zPageLimitText.optional(), cursor: zCursor.optional() });

/** One page; `next_cursor` is null on the last one. */
export function pageOf<S extends z.ZodType>(item: S) {
  return z.strictObject({ items: z.array(item), next_cursor: zCursor.nullable() });
}

/** A request or an answer without content: nothing at all, or `{}`. */
export const zNothing = z.strictObject({}).optional();
