import { z } from 'zod';
import { int } from './codec.ts';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { LIMITS } from './limits.ts';
import { zCollectionId, zMasterId, zMinionId } from './names.ts';

/**
 * A merger tells of a minion it sees for the first time; pillar-api registers it when the master's policy says so.
 * Idempotent. The master's token comes along, so that a merger cannot make up minions of masters that never asked.
 * Errors: unauthorized, unknown_master, unknown_minion (policy `refuse`).
 */
export const estateRegisterMinion = defineEndpoint({
  subject: subjectOf('estate', 'register-minion'),
  server: 'pillar-api',
  callers: ['pillar-merger'],
  request: z.strictObject({ token: z.string().min(1).max(8192), master: zMasterId, minion_id: zMinionId }),
  response: z.strictObject({}),
});

/** Whom a change of the estate touches: everybody, the members of a collection and of those below it, or one minion. */
export const zTouched = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('all') }),
  z.strictObject({ kind: z.literal('collection'), id: zCollectionId }),
  z.strictObject({ kind: z.literal('minion'), master: zMasterId, id: zMinionId }),
]);
export type Touched = z.infer<typeof zTouched>;

/** A minion as hooks are told of it (seed 002). */
export const zTouchedMinion = z.strictObject({
  master: z.string(),
  id: z.string(),
  hostname: z.string(),
  agent_type: z.string(),
  roles: z.array(z.string()),
});
export type TouchedMinion = z.infer<typeof zTouchedMinion>;

/** The minions a change touches, page by page; a page may be short or empty and still have a next one. */
export const estateListTouched = defineEndpoint({
  subject: subjectOf('estate', 'list-touched'),
  server: 'pillar-api',
  callers: ['hook-runner'],
  request: z.strictObject({
    touched: zTouched,
    after: z.string().max(1024).optional(),
    limit: int({ min: 1, max: LIMITS.pageRows }),
  }),
  response: z.strictObject({ minions: z.array(zTouchedMinion), next: z.string().optional() }),
});
