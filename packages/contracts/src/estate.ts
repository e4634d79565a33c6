import { z } from 'zod';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { zMasterId, zMinionId } from './names.ts';

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
