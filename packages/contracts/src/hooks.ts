import { z } from 'zod';
import { int } from './codec.ts';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { secretField } from './http/secret-fields.ts';
import { LIMITS } from './limits.ts';

/** The events whose hooks somebody else asks for, because they can stop what he is about to do (seed 002). */
export const VETO_EVENTS = ['node-pre-deletion'] as const;
export type VetoEvent = (typeof VETO_EVENTS)[number];

/** `unknown`: the runner ended while the hook ran, and nobody can say how far it came. */
export const HOOK_STATUSES = ['ok', 'warning', 'error', 'killed', 'unknown'] as const;
export type HookStatus = (typeof HOOK_STATUSES)[number];

export const zHookResult = z.strictObject({
  hook: z.string(),
  status: z.enum(HOOK_STATUSES),
  reason: z.string(),
  duration_ms: int({ min: 0 }),
  /** The end of what it wrote, its errors before its output: that may be anything. */
  message: secretField(z.string()),
});

/** `error`: a hook failed or was killed, or the hooks could not be run; what they were asked about must not happen. */
export const zHookRun = z.strictObject({
  status: z.enum(['ok', 'warning', 'error']),
  results: z.array(zHookResult),
  /** Hooks that were not run, because one before them stopped the run. */
  not_run: z.array(z.string()),
  /** Why it is an error without a hook's doing. */
  fault: z.string().optional(),
});
export type HookRun = z.infer<typeof zHookRun>;

/**
 * Runs the hooks of an event and waits for them. Who asks again with the same `run` while they run gets the same answer;
 * afterwards they run again, since what they look at may have changed. Errors: `unavailable` (no runner leads now).
 */
export const hooksRun = defineEndpoint({
  subject: subjectOf('hooks', 'run'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({
    event: z.enum(VETO_EVENTS),
    run: z.string().min(1).max(512),
    /** What it is about, for history and audit, such as `/masters/east/minions/web-1`. */
    subject: z.string().min(1).max(1024),
    /** For whom: the user who wants it. */
    by: z.string().min(1).max(256),
    parameters: z.record(
      z.string().regex(/^RUDDER_[A-Z_]{1,64}$/u, 'is no parameter of hooks'),
      z.string().max(LIMITS.hookParameterBytes),
    ),
  }),
  response: zHookRun,
});

/** Asks for a generation of policies: of what may have changed, or of everything without looking whether it has. */
export const hooksGenerate = defineEndpoint({
  subject: subjectOf('hooks', 'generate'),
  server: 'hook-runner',
  callers: ['pillar-api'],
  request: z.strictObject({ all: z.boolean() }),
  response: z.strictObject({}),
});
