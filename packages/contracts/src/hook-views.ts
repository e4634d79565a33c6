import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { zHookResult } from './hooks.ts';
import { pageOf, zTime } from './http/common.ts';
import { zHookEventName } from './http/generations.ts';
import { LIMITS } from './limits.ts';
import { zMasterId, zMinionId } from './names.ts';

/** What hook-runner shows of hooks and generations, and hooks that are run by hand; pillar-api relays it. */

const zPage = { limit: int({ min: 1, max: LIMITS.pageRows }), after: z.string().max(64).optional() };

/** One executable of a folder. */
const zHookView = z.strictObject({
  name: z.string(),
  warn_ms: int({ min: 0 }),
  kill_ms: int({ min: 0 }),
  /** What its head states and nobody can read. */
  faults: z.array(z.string()),
  /** Why it cannot be run; it then counts as failed. */
  fault: z.string().optional(),
});

export const zHookFolder = z.strictObject({
  event: z.string(),
  /** When its hooks are run. */
  when: z.string(),
  veto: z.boolean(),
  parameters: z.array(z.strictObject({ name: z.string(), meaning: z.string() })),
  /** In the order they run. */
  hooks: z.array(zHookView),
  /** What else is in the folder, and why it is no hook. */
  ignored: z.array(z.strictObject({ name: z.string(), why: z.string() })),
  /** The folder cannot be read. */
  fault: z.string().optional(),
});
export type HookFolder = z.infer<typeof zHookFolder>;
export const zHookFolderPage = pageOf(zHookFolder);

export const hooksList = defineEndpoint({
  subject: subjectOf('hooks', 'list'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({ event: zHookEventName.optional() }),
  response: z.strictObject({ events: z.array(zHookFolder) }),
});

/** `POST /hooks/{event}/run` */
export const zHookTry = z.strictObject({
  /** Every parameter of the event, but those the runner knows itself. */
  parameters: z
    .record(
      z.string().regex(/^[A-Z][A-Z_]{0,63}$/u, 'is no parameter of hooks'),
      z
        .string()
        .max(LIMITS.hookParameterBytes)
        .refine((s) => !s.includes('\0') && s.isWellFormed(), 'holds what no environment can carry'),
    )
    .optional(),
  /** Only say what would run, and with what. */
  dry_run: z.boolean('must be true or false').optional(),
});

export const zHookTried = z.strictObject({
  event: z.string(),
  /** Its name in the history; null of a dry run. */
  run: z.string().nullable(),
  status: z.enum(['ok', 'warning', 'error']).nullable(),
  /** The whole environment of its hooks. */
  environment: z.record(z.string(), z.string()),
  /** The folder the hooks run in. */
  folder: z.string(),
  results: z.array(zHookResult),
  /** Of a dry run: all. */
  not_run: z.array(z.string()),
  fault: z.string().optional(),
});

/**
 * Runs the hooks of an event by hand; nothing happens but what they do: no minion is deleted, no generation begins. Errors: bad_request (unknown event, a
 * parameter that is missing or not the event's), unavailable.
 */
export const hooksTry = defineEndpoint({
  subject: subjectOf('hooks', 'try'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: zHookTry.extend({ event: zHookEventName, by: z.string().min(1).max(256) }),
  response: zHookTried,
});

export const zHookRunView = z.strictObject({
  run: z.string(),
  event: z.string(),
  subject: z.string(),
  begun_at: zTime,
  /** Null: under way. */
  ended_at: zTime.nullable(),
  status: z.enum(['ok', 'warning', 'error']).nullable(),
  fault: z.string().optional(),
  /** Without what they wrote: that may be anything, and is in the log. */
  results: z.array(zHookResult.omit({ message: true })),
});
export const zHookRunPage = pageOf(zHookRunView);

export const hooksHistory = defineEndpoint({
  subject: subjectOf('hooks', 'history'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({ event: zHookEventName.optional(), ...zPage }),
  /** Newest first. */
  response: z.strictObject({ runs: z.array(zHookRunView), next: z.string().optional() }),
});

const generationFields = {
  /** When it began. */
  id: zTime,
  ended_at: zTime,
  status: z.enum(['finished', 'failed']),
  reason: z.string().optional(),
  updated_count: int({ min: 0 }),
  failed_count: int({ min: 0 }),
};
export const zGenerationView = z.strictObject(generationFields);
export const zGenerationPage = pageOf(zGenerationView);

const zMinionRef = z.strictObject({ master: z.string(), minion_id: z.string() });
export const zGenerationDetail = z.strictObject({
  ...generationFields,
  /** Minions with new policies, at most LIMITS.generationMinions. */
  updated: z.array(zMinionRef),
  /** Minions that keep their old ones, so many at most too. They are not told to refresh. */
  failed: z.array(zMinionRef.extend({ reason: z.string(), refresh: z.literal('withheld') })),
  /** Names that neither list has, since there are too many: the counts are of all. */
  names_left_out: int({ min: 0 }),
});

export const hooksGenerations = defineEndpoint({
  subject: subjectOf('hooks', 'generations'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject(zPage),
  /** Newest first. */
  response: z.strictObject({ generations: z.array(zGenerationView), next: z.string().optional() }),
});

/** Errors: not_found. */
export const hooksGeneration = defineEndpoint({
  subject: subjectOf('hooks', 'generation'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({ id: zTime }),
  response: zGenerationDetail,
});

/** A name of a compiled pillar that is not the same in both. */
export const zPolicyChange = z.strictObject({
  name: z.string(),
  kind: z.enum(['added', 'removed', 'changed']),
  is_secret: z.boolean(),
  /** Never of a secret, and not where all values together are over LIMITS.diffBytes. */
  before: zValue.optional(),
  after: zValue.optional(),
});

export const zPolicyDiff = z.strictObject({
  master: z.string(),
  minion_id: z.string(),
  /** When the policies in force came into force, and those before them; null: there are none. */
  at: zTime,
  before_at: zTime.nullable(),
  changes: z.array(zPolicyChange),
  /** Values are left out, because all of them would be too much. */
  values_left_out: z.boolean(),
});
export type PolicyDiff = z.infer<typeof zPolicyDiff>;

/** What differs between the policies of a minion and those before them. Errors: not_found (it has none). */
export const hooksPolicyDiff = defineEndpoint({
  subject: subjectOf('hooks', 'policy-diff'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({ master: zMasterId, minion_id: zMinionId }),
  response: zPolicyDiff,
});
