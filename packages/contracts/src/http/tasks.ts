import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { ERROR_CODES } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import {
  zCollectionId,
  zMasterId,
  zMinionId,
  zNewTemplateId,
  zPillarName,
  zTemplateId,
  zTgtType,
  zUserSub,
} from '../names.ts';
import { zCollectionName } from './collections.ts';
import { pageOf, zCursor, zPageLimitText, zTime } from './common.ts';
import { zIdentityToken } from './identity.ts';
import { zPillarView } from './pillars.ts';
import { secretField, secretIfRefused } from './secret-fields.ts';

/** What people call a template. */
const zTemplateName = zCollectionName;

/** `POST /tasks/templates`. The schema is a JSON Schema of draft 2020-12, or of draft-07 when its `$schema` says so. */
export const zTemplateCreate = z.strictObject({
  id: zNewTemplateId.optional(),
  name: zTemplateName,
  schema: zValue,
});

/** `PUT /tasks/templates/{tpl_id}` */
export const zTemplateUpdate = z.strictObject({ name: zTemplateName, schema: zValue });

export const zTemplateView = z.strictObject({
  id: z.string(),
  name: z.string(),
  schema: zValue,
  created_by: z.string(),
  updated_by: z.string(),
  created_at: zTime,
  updated_at: zTime,
  clock: int(),
  etag: z.string(),
});
export const zTemplatePage = pageOf(zTemplateView);

/** `GET /tasks/template/{tpl_id}/with-defaults` (seed 000). */
export const zWithDefaults = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The template's schema with what the caller saved as `default`s. */
  schema: zValue,
  /** Names of what became a default. */
  applied: z.array(z.string()),
  /** Names of secrets: they are saved, and never shown. */
  secrets: z.array(z.string()),
  left_out: z.array(
    z.strictObject({
      name: z.string(),
      /** No such property; breaks the schema; other defaults contradict every branch it has a place in. */
      reason: z.enum(['no_property', 'breaks_schema', 'other_branch']),
    }),
  ),
  /** Tick of the template's last change. */
  clock: int(),
});

const zNamedValue = z.strictObject({
  name: zPillarName,
  value: secretField(zValue, secretIfRefused),
  is_secret: z.boolean('must be true or false').optional(),
});
export type NamedValue = z.infer<typeof zNamedValue>;

const tooMany = `more than ${LIMITS.pillarsPerTask} pillars`;
const zNamedValues = z
  .array(zNamedValue)
  .max(LIMITS.pillarsPerTask, tooMany)
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'a name stands there twice');

/** `PUT /tasks/template/{tpl_id}/defaults`: sets those named, removes those listed, leaves the others. */
export const zDefaultsPut = z.strictObject({
  pillars: zNamedValues,
  remove: z.array(zPillarName).max(LIMITS.pillarsPerTask, tooMany).optional(),
});

/** All of one user's defaults of one template; secrets masked. */
export const zDefaultsView = z.strictObject({ items: z.array(zPillarView) });

export const TASK_STATE_NAMES = ['created', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export const zTaskState = z.enum(TASK_STATE_NAMES, `must be one of ${TASK_STATE_NAMES.join(', ')}`);

/** For whom a task is. */
export const taskTargets = {
  minions: z
    .array(z.strictObject({ master: zMasterId, minion_id: zMinionId }))
    .max(LIMITS.minionsPerTask, `more than ${LIMITS.minionsPerTask} minions`)
    .optional(),
  /** Members of these, and of what is below them. */
  collections: z
    .array(zCollectionId)
    .max(LIMITS.collectionsPerTask, `more than ${LIMITS.collectionsPerTask} collections`)
    .optional(),
};

/** `POST /tasks`: a task of a template, with its pillars (seed 000, create_for_task). */
export const zTaskCreate = z.strictObject({
  tpl_id: zTemplateId,
  ...taskTargets,
  pillars: zNamedValues,
  /** Names of the caller's defaults whose values are taken as they are; a secret's is not shown on the way. */
  from_defaults: z.array(zPillarName).max(LIMITS.pillarsPerTask, tooMany).optional(),
  /** Also saves `pillars` as the caller's defaults of the template. */
  save_as_defaults: z.boolean('must be true or false').optional(),
  /** Seconds until nobody gets its pillars any more, whatever its state. */
  expires_in_s: int({ min: 1, max: 366 * 86400 }).optional(),
});
export type TaskCreate = z.infer<typeof zTaskCreate>;

export const zTaskView = z.strictObject({
  id: z.string(),
  tpl_id: z.string(),
  state: zTaskState,
  /** Its minions can have its pillars now: it has neither ended nor expired. */
  live: z.boolean(),
  minions: z.array(z.strictObject({ master: z.string(), minion_id: z.string() })),
  collections: z.array(z.string()),
  /** The environment of its pillars, for whoever runs it. */
  pillarenv: z.string(),
  created_by: z.string(),
  updated_by: z.string(),
  created_at: zTime,
  updated_at: zTime,
  expires_at: zTime.nullable(),
  ended_at: zTime.nullable(),
  clock: int(),
  etag: z.string(),
});
export const zTaskDetail = zTaskView.extend({
  pillars: z.array(z.strictObject({ pid: z.string(), name: z.string(), is_secret: z.boolean() })),
});
/** As it was made. `identity`: its token; null where whoever makes the task has none for it (see docs/identities.md). */
export const zTaskCreated = zTaskDetail.extend({
  identity: zIdentityToken.nullable(),
  /** Why there is none; null where there is one. */
  identity_refused: z.strictObject({ code: z.enum(ERROR_CODES), detail: z.string() }).nullable(),
});
export const zTaskPage = pageOf(zTaskView);

/** `GET /tasks` */
export const zTaskQuery = z.strictObject({
  state: zTaskState.optional(),
  tpl_id: zTemplateId.optional(),
  limit: zPageLimitText.optional(),
  cursor: zCursor.optional(),
});

/** `POST /tasks/{task_id}/state` */
export const zTaskStateChange = z.strictObject({ state: zTaskState });

/**
 * `GET /pillars/for-target` (seed 000, get_for_target): the pillars of exactly one pillarenv, which is
 * `{tgt_type}:{tgt_id};user:{user_sub}`, or `{tgt_type}:{tgt_id}` without a user; or the one named.
 */
export const zForTargetQuery = z.strictObject({
  tgt_type: zTgtType,
  tgt_id: z.string().min(1, 'tgt_id is empty').max(512, 'tgt_id is too long'),
  user_sub: zUserSub.optional(),
  pillarenv: z
    .string()
    .min(1, 'pillarenv is empty')
    .max(1024, 'pillarenv is too long')
    .refine((s) => !s.includes(','), 'pillarenv names more than one environment')
    .optional(),
  limit: zPageLimitText.optional(),
  cursor: zCursor.optional(),
});
