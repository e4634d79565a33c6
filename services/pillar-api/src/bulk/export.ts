import {
  type BulkRecord,
  decodeTree,
  encodeTree,
  minionEnv,
  parseEnv,
  ROOT_TGT_ID,
  taskEnv,
  taskTemplateEnv,
  zBulkRecord,
  zInventoryFacts,
} from '@colonnade/contracts';
import { type EstateView, namedCollections, type PillarRecord } from '@colonnade/estate-store';
import { canonicalText, fromPlain, type Value, type ValueObject, valueToYaml } from '@colonnade/value';
import type { BulkFormat } from '../http/streamed-route.ts';
import { readRule } from '../membership/rule-text.ts';
import { typesOf } from '../service-events/own-types.ts';
import { viewTime } from '../views.ts';
import { MARKED_VERSION } from './whole.ts';

/** Characters of a chunk handed on; a record is never cut. */
const CHUNK_CHARS = 64 * 1024;

/**
 * The estate as text, record by record: collections with parents first, masters without tokens, minions, inventories,
 * templates, tasks, services without enrolments, then pillars in the order of their target, name and environment. The same estate gives the same text.
 * Pillars no import can make (adopted ones in plain environments) are left out, and counted at the end, where it also says
 * how many records there are: one that was cut has no such end.
 */
export async function* exportEstate(
  view: EstateView,
  { format, secrets }: { format: BulkFormat; secrets: 'sealed' | 'omit' },
): AsyncGenerator<string> {
  const write = format === 'yaml' ? asYaml : asLine;
  let chunk = '';
  for await (const record of markedRecords(view, secrets)) {
    chunk += write(record);
    if (chunk.length < CHUNK_CHARS) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

async function* markedRecords(view: EstateView, secrets: 'sealed' | 'omit'): AsyncGenerator<BulkRecord> {
  const { tick: clock, incarnation } = view.clock;
  const mark = { kind: 'estate', version: MARKED_VERSION } as const;
  yield { ...mark, clock, incarnation };
  const left = { out: 0 };
  let records = 0;
  for await (const record of recordsOf(view, secrets, left)) {
    records += 1;
    yield record;
  }
  yield { ...mark, records, ...(left.out > 0 ? { left_out: left.out } : {}) };
}

async function* recordsOf(
  view: EstateView,
  secrets: 'sealed' | 'omit',
  left: { out: number },
): AsyncGenerator<BulkRecord> {
  yield* collectionsOf(view);
  for await (const page of view.pages('masters')) {
    for (const { id, envs, onUnknownMinion } of page) {
      yield { kind: 'master', id, envs: [...envs], on_unknown_minion: onUnknownMinion };
    }
  }
  for await (const page of view.pages('minions')) {
    for (const minion of page) {
      const { master, id } = minion;
      const collections = namedCollections(minion);
      yield { kind: 'minion', master, id, collections: [...collections] };
    }
  }
  yield* tasksOf(view);
  for await (const page of view.pages('services')) {
    for (const service of page) yield { kind: 'service', id: service.id, types: [...typesOf(service)] };
  }
  for await (const page of view.pages('pillars')) {
    for (const pillar of page) {
      const target = targetOf(pillar);
      if (target === undefined) left.out += 1;
      if (target === undefined || (pillar.isSecret && secrets === 'omit')) continue;
      const { name, value, isSecret } = pillar;
      yield { kind: 'pillar', ...target, name, ...(isSecret ? { is_secret: true } : {}), value };
    }
  }
}

/** What tasks hang on comes first. */
async function* tasksOf(view: EstateView): AsyncGenerator<BulkRecord> {
  for await (const page of view.pages('inventories')) {
    for (const { master, id, facts } of page) {
      yield { kind: 'inventory', master, minion_id: id, facts: decodeTree(zInventoryFacts, facts) };
    }
  }
  for await (const page of view.pages('templates')) {
    for (const { id, name, schema } of page) yield { kind: 'template', id, name, schema };
  }
  for await (const page of view.pages('tasks')) {
    for (const { id, templateId, state, minions, collections, expiresAtMs, endedAtMs } of page) {
      yield {
        ...{ kind: 'task', id, tpl_id: templateId, state },
        minions: minions.map((one) => ({ master: one.master, minion_id: one.id })),
        collections: [...collections],
        ...(expiresAtMs === undefined ? {} : { expires_at: viewTime(expiresAtMs) }),
        ...(endedAtMs === undefined ? {} : { ended_at: viewTime(endedAtMs) }),
      };
    }
  }
}

/** By levels, since an import wants parents first; within a level by id. The tree is small: it is held. */
async function* collectionsOf(view: EstateView): AsyncGenerator<BulkRecord> {
  const all = [];
  for await (const page of view.pages('collections')) all.push(...page);
  const byParent = Map.groupBy(all, ({ parentId }) => parentId);
  for (let level = byParent.get(undefined) ?? []; level.length > 0; ) {
    for (const { id, name, parentId, owner, rule } of level) {
      yield {
        kind: 'collection',
        id,
        name,
        ...(parentId === undefined ? { owner } : { parent_id: parentId }),
        ...(rule === undefined ? {} : { rule: readRule(rule) }),
      };
    }
    level = level.flatMap(({ id }) => byParent.get(id) ?? []);
  }
}

type Target = Pick<
  Extract<BulkRecord, { kind: 'pillar' }>,
  'tgt_type' | 'minion_id' | 'master' | 'collection_id' | 'tgt_id' | 'user'
>;

function targetOf({ tgtType, tgtId, pillarenv }: PillarRecord): Target | undefined {
  const env = parseEnv(pillarenv);
  if (tgtType === 'root')
    return tgtId === ROOT_TGT_ID && pillarenv === 'base' ? { tgt_type: 'root' } : undefined;
  if (tgtType === 'collection') return { tgt_type: 'collection', collection_id: tgtId };
  if (tgtType === 'task')
    return pillarenv === taskEnv(tgtId) ? { tgt_type: 'task', tgt_id: tgtId } : undefined;
  if (tgtType === 'task_tpl') {
    const prefix = taskTemplateEnv(tgtId, '');
    if (!pillarenv.startsWith(prefix)) return undefined;
    return { tgt_type: 'task_tpl', tgt_id: tgtId, user: pillarenv.slice(prefix.length) };
  }
  if (tgtType !== 'minion' || env.kind !== 'minion') return undefined;
  const { master } = env;
  return pillarenv === minionEnv(tgtId, master)
    ? { tgt_type: 'minion', master, minion_id: tgtId }
    : undefined;
}

function asLine(record: BulkRecord): string {
  return `${canonicalText(treeOf(record))}\n`;
}

/** Keys of records in their own order, which reads better; keys of values as the store has them, sorted. */
function asYaml(record: BulkRecord): string {
  const tree = treeOf(record) as ValueObject;
  const ordered = Object.setPrototypeOf({}, null) as ValueObject;
  for (const key of Object.keys(record)) if (tree[key] !== undefined) ordered[key] = sorted(tree[key]);
  return `---\n${valueToYaml(ordered)}`;
}

function sorted(value: Value): Value {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const keys = Object.keys(value).sort();
  return Object.setPrototypeOf(
    Object.fromEntries(keys.map((key) => [key, sorted(value[key] as Value)])),
    null,
  ) as ValueObject;
}

/** Values are not encoded: they are trees already, and what was kept in earlier days is not held to today's limits. */
function treeOf(record: BulkRecord): Value {
  if (record.kind !== 'pillar') return encodeTree(zBulkRecord, record);
  const { value, ...rest } = record;
  return Object.assign(fromPlain(rest) as ValueObject, { value });
}
