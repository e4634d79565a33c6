import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zMasterId, zPillarName } from '../names.ts';
import { zCursor, zTimeAsked } from './common.ts';
import { zPillarCreate, zPillarVersion } from './pillars.ts';
import { secretField } from './secret-fields.ts';

const MAX_TICK = Number.MAX_SAFE_INTEGER;
const zTick = int({ min: 1, max: MAX_TICK });
/** A tick in a path or a query string. */
export const zTickText = z.string().regex(/^[1-9][0-9]{0,14}$/u, 'must be a clock: digits, from 1');
/** A moment of the past: a clock, or a time. */
export const zPast = z.union(
  [int({ min: 0, max: MAX_TICK }), zTimeAsked],
  'must be a clock or an RFC 3339 time',
);
const zPid = z.string().min(1, 'pid is empty').max(128, 'pid is too long');

/** Path of `GET /pillars/{pid}/versions/{tick}`. */
export const zVersionPath = z.strictObject({ pid: zPid, tick: zTickText });

/** `GET /pillars/{pid}/diff`; without `to` the newest version. */
export const zDiffQuery = z.strictObject({ from: zTickText, to: zTickText.optional() });

/** What differs at one place; without `before` it was added, without `after` removed. */
export const zChange = z.strictObject({
  /** JSON Pointer (RFC 6901); empty: the whole value. */
  path: z.string(),
  before: zValue.optional(),
  after: zValue.optional(),
});
export type Change = z.infer<typeof zChange>;

const zVersionMeta = zPillarVersion.omit({ value: true });

export const zPillarDiff = z.strictObject({
  pid: z.string(),
  from: zVersionMeta,
  to: zVersionMeta,
  /** Whether the value is another. Of a secret: whether it was sealed anew. Null: a value was purged, nobody knows. */
  value_changed: z.boolean().nullable(),
  /** Never of a secret. */
  changes: z.array(zChange),
  /** There are more than are shown. */
  changes_more: z.boolean(),
});

/** `POST /pillars/{pid}/restore`: the value of that version, where the pillar stands now. */
export const zPillarRestore = z.strictObject({ tick: zTick });

/** `POST /pillars/{pid}/replace`: the new value of a secret. */
export const zPillarReplace = z.strictObject({ value: secretField(zValue) });

/** `POST /pillars/{pid}/rename` */
export const zPillarRename = z.strictObject({ name: zPillarName });

/**
 * `POST /pillars/{pid}/move`: the target as in `POST /pillars`, without those whose pillars a template's schema decides
 * over, which are made with the task and as a whole.
 */
export const zPillarMove = zPillarCreate
  .pick({ tgt_id: true, minion_id: true, master: true, collection_id: true })
  .extend({
    tgt_type: z.enum(
      ['root', 'collection', 'minion'],
      'must be "root", "collection" or "minion"; pillars of tasks and templates are checked against a schema and do not move there',
    ),
  });

/** `POST /masters/{master}/minions/{id}/move` */
export const zMinionMove = z.strictObject({ master: zMasterId });

/** `POST /scopes/restore`. Without `dry_run` it needs the ETag of a preview as If-Match. */
export const zScopeRestore = z.strictObject({
  pillarenv: z
    .string()
    .min(1, 'pillarenv is empty')
    .refine((s) => Buffer.byteLength(s) <= 1024, 'pillarenv is longer than 1024 bytes'),
  at: zPast,
  dry_run: z.boolean('must be true or false').optional(),
  pids: z
    .array(zPid)
    .min(1, 'names no pillar')
    .max(LIMITS.batchPillars, `more than ${LIMITS.batchPillars} pillars`)
    .optional(),
  /** Changes of one part. */
  limit: int({ min: 1, max: LIMITS.batchPillars }).optional(),
  /** Goes on where a part ended; `at` is the one of the first part then. */
  cursor: zCursor.optional(),
});

export const SCOPE_CONFLICTS = ['moved', 'purged', 'trimmed', 'secrecy', 'sealed'] as const;

export const zScopeRestored = z.strictObject({
  pillarenv: z.string(),
  /** The clock whose state is restored. */
  at: int(),
  /** Of the preview, or of the restore itself. */
  clock: int(),
  dry_run: z.boolean(),
  /** Of the preview, the same in all its parts; of a part that was restored, for the next one. */
  etag: z.string(),
  create: z.array(z.strictObject({ pid: z.string(), name: z.string(), version: int() })),
  update: z.array(z.strictObject({ pid: z.string(), name: z.string(), version: int(), now: int() })),
  delete: z.array(z.strictObject({ pid: z.string(), name: z.string(), now: int() })),
  unchanged: int(),
  /** While there are any, nothing is restored; `pids` can leave them out. */
  conflicts: z.array(z.strictObject({ pid: z.string(), name: z.string(), reason: z.enum(SCOPE_CONFLICTS) })),
  /** More is left: the next part. A part can be empty. */
  next_cursor: zCursor.nullable(),
});

/** `GET /history/retention` */
export const zRetention = z.strictObject({
  keep_versions: int().nullable(),
  keep_days: int().nullable(),
  /** Milliseconds between two runs; 0: only when asked. */
  run_ms: int(),
});

/** `POST /history/retention`: one run now, for as long as a request may take. */
export const zRetentionRun = z.strictObject({
  removed: int(),
  /** False: it goes on with the next run. */
  finished: z.boolean(),
});
