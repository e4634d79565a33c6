import { z } from 'zod';
import { zMasterId, zMinionId } from '../names.ts';
import { zCursor, zPageLimitText, zTime } from './common.ts';

/** `POST /generations` */
export const zGenerationCreate = z
  .strictObject({ all: z.boolean('must be true or false').optional() })
  .optional();

/** Path of one generation. */
export const zGenerationPath = z.strictObject({ id: zTime });

/** Path of the policies of a minion. */
export const zPoliciesPath = z.strictObject({ master: zMasterId, id: zMinionId });

/** Name of a folder of `hooks.d`. */
export const zHookEventName = z
  .string()
  .regex(/^[a-z]{1,20}(-[a-z]{1,20}){1,5}$/u, 'is no event that has hooks');

/** `GET /hooks/runs` */
export const zHookRunsQuery = z.strictObject({
  event: zHookEventName.optional(),
  limit: zPageLimitText.optional(),
  cursor: zCursor.optional(),
});

/** Path of the hooks of an event. */
export const zHookPath = z.strictObject({ event: zHookEventName });
