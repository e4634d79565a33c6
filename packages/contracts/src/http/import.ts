import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import {
  zCollectionId,
  zMasterId,
  zMinionId,
  zNewTemplateId,
  zTaskId,
  zTemplateId,
  zUserSub,
} from '../names.ts';
import { zCollectionRule } from './collection-rules.ts';
import { zCollectionName } from './collections.ts';
import { zTimeAsked } from './common.ts';
import { zInventoryFacts } from './inventories.ts';
import { zMasterUpdate, zMinionPut } from './masters.ts';
import { zPillarCreate } from './pillars.ts';
import { secretField, secretIfMarked } from './secret-fields.ts';
import { zServiceCreate } from './services.ts';
import { taskTargets, zTaskState, zTemplateUpdate } from './tasks.ts';

/** Media types of an import and an export: a stream of YAML documents, or of JSON texts, one to a line. */
export const BULK_MEDIA_TYPES = { yaml: 'application/yaml', json: 'application/x-ndjson' } as const;

/** The first and the last record of an export. An import needs none, but one that begins as an export ends as one, from version 2 on. */
export const zEstateRecord = z.strictObject({
  kind: z.literal('estate'),
  version: int({ min: 1, max: 2 }),
  /** Of the moment that was exported; for people. */
  clock: int().optional(),
  incarnation: z.string().max(64).optional(),
  /** At the end of an export: how many records stand between its first and this one. */
  records: int().optional(),
  /** At the end of an export: pillars of adopted records, which no import can make. */
  left_out: int().optional(),
});

export const zCollectionRecord = z.strictObject({
  kind: z.literal('collection'),
  id: zCollectionId,
  name: zCollectionName,
  parent_id: zCollectionId.nullable().optional(),
  owner: zUserSub.optional(),
  /** Left out: a rule that is there stays; null: there is none from now on. */
  rule: zCollectionRule.nullable().optional(),
});

/** Without its tokens, which are nowhere to be had. */
export const zMasterRecord = z.strictObject({
  kind: z.literal('master'),
  id: zMasterId,
  ...zMasterUpdate.partial().shape,
});

export const zMinionRecord = z.strictObject({
  kind: z.literal('minion'),
  master: zMasterId,
  id: zMinionId,
  ...zMinionPut.partial().shape,
});

/** What a minion has told of itself. Without a minion of that name it waits for somebody to accept it. */
export const zInventoryRecord = z.strictObject({
  kind: z.literal('inventory'),
  master: zMasterId,
  minion_id: zMinionId,
  facts: zInventoryFacts,
});

export const zTemplateRecord = zTemplateUpdate.extend({ kind: z.literal('template'), id: zNewTemplateId });

/** A task as it is, also one that has ended. Minions and collections of it may be gone. */
export const zTaskRecord = z.strictObject({
  kind: z.literal('task'),
  id: zTaskId,
  tpl_id: zTemplateId,
  state: zTaskState,
  ...taskTargets,
  expires_at: zTimeAsked.nullable().optional(),
  ended_at: zTimeAsked.nullable().optional(),
});

/** What it may publish; hosts of it enrol anew, since nothing they prove themselves with is exported. */
export const zServiceRecord = zServiceCreate.extend({ kind: z.literal('service') });

/** As in `POST /pillars`. A secret is plain and is sealed on its way in, or comes as it was exported, `$enc`. */
export const zPillarRecord = zPillarCreate.omit({ created_by: true }).extend({
  kind: z.literal('pillar'),
  /** With tgt_type task_tpl: whose defaults; the caller's, when it is left out. */
  user: zUserSub.optional(),
});

/** One record of an import or an export. What it names is in the estate, or stands before it. */
export const zBulkRecord = z.discriminatedUnion(
  'kind',
  [
    ...([zEstateRecord, zCollectionRecord, zMasterRecord, zMinionRecord] as const),
    ...([zInventoryRecord, zTemplateRecord, zTaskRecord, zServiceRecord, zPillarRecord] as const),
  ],
  'kind: must be estate, collection, master, minion, inventory, template, task, service or pillar',
);
export type BulkRecord = z.infer<typeof zBulkRecord>;

const zFlag = z.enum(['true', 'false'], 'must be true or false');

/** `POST /import` */
export const zImportQuery = z.strictObject({
  dry_run: zFlag.optional(),
  /** Of a dry run: refused (412) unless exactly those changes are to be made. */
  confirm: z
    .string()
    .regex(/^[0-9a-f]{64}$/u, 'is not from a dry run')
    .optional(),
  /** A secret that is there gets the value in the file, sealed anew; otherwise that is refused. */
  replace_secrets: zFlag.optional(),
  /** The media type says it too; when both are there they must agree. */
  format: z.enum(['yaml', 'json']).optional(),
});

const zCounts = z.strictObject({ created: int(), updated: int(), unchanged: int() });

/** What an import does, or would do. */
export const zImportReport = z.strictObject({
  dry_run: z.boolean(),
  /** Nothing of the file is refused. */
  acceptable: z.boolean(),
  /** Names exactly these changes on exactly this state of what they touch. */
  confirm: z.string(),
  /** Of the estate: compared with; of a real import: made by it. */
  clock: int(),
  counts: z.strictObject({
    ...{ collections: zCounts, masters: zCounts, minions: zCounts, inventories: zCounts },
    ...{ templates: zCounts, tasks: zCounts, services: zCounts, pillars: zCounts },
  }),
  /** The first changes, in the order of the file. Of secrets no value is shown. */
  diff: z.array(
    z.strictObject({
      line: int(),
      kind: z.enum(['collection', 'master', 'minion', 'inventory', 'template', 'task', 'service', 'pillar']),
      op: z.enum(['create', 'update']),
      /** `scope name` of a pillar, the id of the others. */
      key: z.string(),
      is_secret: z.boolean().optional(),
      before: secretField(zValue, secretIfMarked).optional(),
      after: secretField(zValue, secretIfMarked).optional(),
    }),
  ),
  diff_more: z.boolean(),
  /** Of a dry run: what is refused, the first hundred. */
  problems: z.array(
    z.strictObject({ line: int(), code: z.string(), field: z.string().optional(), detail: z.string() }),
  ),
});
export type ImportReport = z.output<typeof zImportReport>;

/** `GET /export` */
export const zExportQuery = z.strictObject({
  format: z.enum(['yaml', 'json']).optional(),
  /** `sealed`: as they are stored, for which the caller must be allowed to reveal; `omit`: left out. */
  secrets: z.enum(['sealed', 'omit']).optional(),
});
