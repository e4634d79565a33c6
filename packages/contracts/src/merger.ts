import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { compileWire } from './compile-wire.ts';
import { defineEndpoint, itemResult, subjectOf } from './endpoints.ts';
import { secretField } from './http/secret-fields.ts';
import { LIMITS } from './limits.ts';
import { zCollectionId, zMasterId, zMinionId, zPillarName, zTgtType } from './names.ts';

/** What a secret looks like wherever it is shown and not meant to be read (seed 000). */
export const SECRET_MASK = '*******';

/** A pillarenv as a master sends it: one or several environments, separated by commas (seed 000), or `auto`. */
export const zPillarenvRequest = z
  .string()
  .min(1, 'pillarenv is empty')
  .refine(
    (s) => Buffer.byteLength(s) <= LIMITS.pillarenvBytes,
    `pillarenv is longer than ${LIMITS.pillarenvBytes} bytes`,
  )
  .refine((s) => !/[\u0000-\u001f\u007f]/u.test(s), 'pillarenv holds a control character');

/** Where a value comes from. */
export const zOrigin = z.strictObject({
  /** Null: of a change that would make it. */
  pid: z.string().nullable(),
  tgt_type: zTgtType,
  tgt_id: z.string(),
  pillarenv: z.string(),
  /** It is not saved: the position of the change it comes from, from 0. */
  change: int().optional(),
});
export type Origin = z.infer<typeof zOrigin>;

/** Nobody knows yet whether what is only supposed is a secret; in the request of a preview it is taken for one too. */
function isOfUnsavedChange({ winner }: Readonly<Record<string, unknown>>): boolean {
  return (winner as { change?: unknown } | undefined)?.change !== undefined;
}

export const zExplainedKey = z.strictObject({
  name: z.string(),
  is_secret: z.boolean(),
  /** The plain value, or SECRET_MASK; null when values are left out, and from the merger for what it was not given. */
  value: secretField(zValue, isOfUnsavedChange),
  winner: zOrigin,
  /** The ones it overrode, nearest first. */
  overrode: z.array(zOrigin),
});

export const zExplanation = z.strictObject({
  clock: int(),
  master: z.string(),
  minion_id: z.string(),
  /** The environments as resolved and allowed, joined with commas. */
  pillarenv: z.string(),
  /** Collections the minion is a member of by a rule over its inventory; absent: none. */
  rule_collections: z.array(z.string()).optional(),
  /** The environments that were read, in the order they are applied: a later one wins. */
  scopes: z.array(z.string()),
  keys: z.array(zExplainedKey),
});
export type Explanation = z.infer<typeof zExplanation>;

/** A change that is supposed, resolved, and without its value: that stays with who asks. */
export const zUnsavedChange = z.strictObject({
  op: z.enum(['set', 'delete']),
  tgt_type: zTgtType,
  tgt_id: z.string(),
  pillarenv: z.string(),
  name: zPillarName,
  is_secret: z.boolean(),
});
export type UnsavedChange = z.infer<typeof zUnsavedChange>;

/** What stood in a scope, whole, and without values: those stay with who asks. */
export const zPastScope = z.strictObject({
  pillarenv: z.string(),
  pillars: z.array(
    z.strictObject({
      pid: z.string(),
      tgt_type: zTgtType,
      tgt_id: z.string(),
      name: z.string(),
      is_secret: z.boolean(),
    }),
  ),
});
export type PastScope = z.infer<typeof zPastScope>;

/** Memberships that are supposed instead of a minion's own, in their order. */
export const zSupposedCollections = z
  .array(zCollectionId)
  .max(LIMITS.collectionsPerMinion, `more than ${LIMITS.collectionsPerMinion} collections`)
  .refine((ids) => new Set(ids).size === ids.length, 'a collection is listed twice');

export const mergerExplain = defineEndpoint({
  subject: subjectOf('merger', 'explain'),
  server: 'pillar-merger',
  callers: ['pillar-api', 'operator'],
  request: z.strictObject({
    master: zMasterId,
    minion_id: zMinionId,
    pillarenv: zPillarenvRequest,
    omit_values: z.boolean().optional(),
    changes: z.array(zUnsavedChange).max(LIMITS.previewChanges).optional(),
    collections: zSupposedCollections.optional(),
    /** Supposed instead of what these scopes hold. `unavailable` when another one is to be read: ask anew. */
    past: z.array(zPastScope).optional(),
  }),
  response: zExplanation,
});

/**
 * The pillars of minions as a generation writes them: merged with `auto`, secrets sealed as they are stored. An error for
 * each that has none: unknown_master, unknown_minion; `too_large` for one over LIMITS.compilePillarBytes. The answer is bounded
 * by bytes and time: `items` are those of the first minions, at least of one. Ask again for the rest.
 */
export const mergerCompile = defineEndpoint({
  subject: subjectOf('merger', 'compile'),
  server: 'pillar-merger',
  callers: ['hook-runner'],
  request: z.strictObject({
    minions: z
      .array(z.strictObject({ master: zMasterId, minion_id: zMinionId }))
      .min(1)
      .max(LIMITS.compileMinions),
    /** From the store, whatever is cached. */
    fresh: z.boolean().optional(),
  }),
  response: z.strictObject({
    clock: int(),
    items: z.array(itemResult(z.strictObject({ pillar: zValue, secrets: z.array(z.string()) }))),
  }),
  wire: compileWire,
});

/**
 * Tells a master whose pillar its Salt is to refresh: an entry of the master's refresh stream. `redis_unavailable`: nothing
 * was told. Told twice does no harm.
 */
export const mergerRefresh = defineEndpoint({
  subject: subjectOf('merger', 'refresh'),
  server: 'pillar-merger',
  callers: ['hook-runner'],
  request: z.strictObject({
    master: zMasterId,
    generation: z.string().min(1).max(64),
    minions: z.array(zMinionId).min(1).max(LIMITS.refreshMinions),
  }),
  response: z.strictObject({ entry: z.string() }),
});
