import { randomUUID } from 'node:crypto';
import { type BulkRecord, ColonnadeError, isSaltControlName, type PillarContext } from '@colonnade/contracts';
import {
  type EstateStore,
  type ImportChange,
  isEndState,
  namedCollections,
  type OutboxDraft,
} from '@colonnade/estate-store';
import { fromPlain, parseValue, type Value, type ValueObject, valuesEqual } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { type Permission, requirePermission } from '../auth/permissions.ts';
import { ruleText } from '../membership/rule-text.ts';
import { checkOpenValue, isSealedValue } from '../pillar-value.ts';
import { resolveTarget } from '../target.ts';
import type { Schemas } from '../templates/schemas.ts';
import { type Lookup, PLANNED } from './lookup.ts';
import { planService } from './plan-service.ts';
import { planInventory, planTask, planTemplate } from './plan-tasks.ts';

export type Kind = Exclude<BulkRecord['kind'], 'estate'>;

/** What one record comes to. `seal`: its value is still plain and belongs to a secret; `verify`: it came sealed. */
export type Planned = {
  kind: Kind;
  /** What people know it by. */
  key: string;
  change: ImportChange | undefined;
  /** The pillarenv of a pillar. */
  scope?: string;
  isSecret?: boolean;
  before?: Value;
  after?: Value;
  seal?: PillarContext;
  verify?: PillarContext;
  /** What is told of it; of collections, masters, minions and pillars see `events.ts`. */
  event?: OutboxDraft;
};

/** A planned record and the line in which it begins. */
export type Step = { line: number; planned: Planned };

export type Planning = {
  principal: Principal;
  store: Pick<EstateStore, 'findPillar'>;
  lookup: Lookup;
  schemas: Pick<Schemas, 'check'>;
  replaceSecrets: boolean;
};
export type Of<K extends Kind> = Extract<BulkRecord, { kind: K }>;

/**
 * Compares one record with the estate, as it will be with the records before it. Nothing is written.
 * @throws ColonnadeError what is wrong with this record, or not allowed to this caller
 */
export async function planRecord(
  planning: Planning,
  record: Exclude<BulkRecord, { kind: 'estate' }>,
): Promise<Planned> {
  switch (record.kind) {
    case 'collection':
      return planCollection(planning, record);
    case 'master':
      return planMaster(planning, record);
    case 'minion':
      return planMinion(planning, record);
    case 'inventory':
      return planInventory(planning, record);
    case 'template':
      return planTemplate(planning, record);
    case 'task':
      return planTask(planning, record);
    case 'service':
      return planService(planning, record);
    case 'pillar':
      return planPillar(planning, record);
  }
}

async function planCollection({ principal, lookup }: Planning, asked: Of<'collection'>): Promise<Planned> {
  const { id, name } = asked;
  const parentId = asked.parent_id ?? undefined;
  const parent = parentId === undefined ? undefined : await lookup.getCollection(parentId);
  if (parentId !== undefined && parent === undefined) {
    throw refuse('parent_id', 'no such collection; it must be in the estate, or stand before in the file');
  }
  const found = await lookup.getCollection(id);
  const owner = asked.owner ?? parent?.owner ?? found?.owner ?? principal.sub;
  if (parent !== undefined && owner !== parent.owner)
    throw refuse('owner', 'of a child is that of its parent');
  if (found !== undefined && found.owner !== owner) throw refuse('owner', 'is not changed by an import');
  const record = { id, name, parentId, owner };
  const rule = asked.rule === undefined ? (found?.rule ?? null) : ruleText(asked.rule);
  const isRuled = rule !== (found?.rule ?? null);
  const planned = {
    kind: 'collection',
    key: id,
    ...(found === undefined ? {} : { before: collectionOf(found, found.rule ?? null) }),
    after: collectionOf(record, rule),
  } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'collection:write');
  // It chooses among all minions.
  if (isRuled) may(principal, 'minion:write');
  if (found === undefined && owner !== principal.sub) may(principal, 'collection:assign-owner');
  const put = { kind: 'collection.put', expect: found?.tick ?? 'absent', record } as const;
  return { ...planned, change: isRuled ? { ...put, rule } : put };
}

type Collection = { name: string; parentId: string | undefined; owner: string };

/** The rule as it is: `fromPlain` would make 1.0 of it 1. */
function collectionOf({ name, parentId, owner }: Collection, rule: string | null): Value {
  const ruled = rule === null ? {} : { rule: parseValue(rule) };
  return Object.assign(fromPlain({ name, parent_id: parentId ?? null, owner }) as ValueObject, ruled);
}

async function planMaster({ principal, lookup }: Planning, asked: Of<'master'>): Promise<Planned> {
  const { id } = asked;
  const found = await lookup.getMaster(id);
  const envs = asked.envs ?? found?.envs ?? [];
  const onUnknownMinion = asked.on_unknown_minion ?? found?.onUnknownMinion ?? 'register';
  const record = { id, envs, onUnknownMinion, tokenIds: found?.tokenIds ?? [] };
  const view = (of: Pick<typeof record, 'envs' | 'onUnknownMinion'>) => ({
    envs: [...of.envs],
    on_unknown_minion: of.onUnknownMinion,
  });
  const planned = { kind: 'master', key: id, ...shown(found && view(found), view(record)) } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'master:write');
  return { ...planned, change: { kind: 'master.put', expect: found?.tick ?? 'absent', record } };
}

async function planMinion({ principal, lookup }: Planning, asked: Of<'minion'>): Promise<Planned> {
  const { master, id } = asked;
  if ((await lookup.getMaster(master)) === undefined) {
    throw unknownMaster();
  }
  const found = await lookup.getMinion(master, id);
  // Those by rule are nobody's to import.
  const named = found && { collections: namedCollections(found) };
  const collections = asked.collections ?? named?.collections ?? [];
  for (const [index, collection] of collections.entries()) {
    if ((await lookup.getCollection(collection)) !== undefined) continue;
    throw refuse(`collections.${index}`, 'no such collection');
  }
  const record = { master, id, collections, registeredBy: found?.registeredBy ?? principal.sub };
  const view = (of: { collections: readonly string[] }) => ({ collections: [...of.collections] });
  const planned = {
    kind: 'minion',
    key: `${master}/${id}`,
    ...shown(named && view(named), view(record)),
  } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'minion:write');
  return { ...planned, change: { kind: 'minion.put', expect: found?.tick ?? 'absent', record } };
}

async function planPillar(planning: Planning, asked: Of<'pillar'>): Promise<Planned> {
  const { principal, store, lookup } = planning;
  const { user = principal.sub } = asked;
  if (asked.user !== undefined && asked.tgt_type !== 'task_tpl') throw refuse('user', 'belongs to a default');
  const target = await resolveTarget(lookup, asked, user);
  const context = { ...target, name: asked.name };
  const isSecret = asked.is_secret ?? false;
  const isSealed = isSecret && isSealedValue(asked.value);
  if (!isSealed) checkOpenValue(asked.value);
  const found = await store.findPillar(target.tgtType, target.tgtId, asked.name, target.pillarenv);
  const key = `${target.pillarenv} ${asked.name}`;
  const planned: Planned = { kind: 'pillar', key, scope: target.pillarenv, isSecret, change: undefined };
  if (found !== undefined) checkSecrecy(planning, found, { isSecret, isSealed, value: asked.value });
  if (found !== undefined && valuesEqual(found.value, asked.value)) return planned;
  may(principal, 'pillar:write');
  mayName(principal, asked.name);
  if (isSealed) may(principal, 'secret:reveal');
  // Another user's own, as a collection of his.
  if (user !== principal.sub) may(principal, 'collection:assign-owner');
  if (found === undefined && target.tgtType === 'task') await checkLive(lookup, target.tgtId);
  const sealing = isSealed ? { verify: context } : isSecret ? { seal: context } : {};
  const values = isSecret
    ? {}
    : { after: asked.value, ...(found === undefined ? {} : { before: found.value }) };
  const written = { value: asked.value, isSecret };
  const change: ImportChange =
    found === undefined
      ? { kind: 'pillar.create', record: { pid: randomUUID(), ...context, ...written } }
      : { kind: 'pillar.update', pid: found.pid, expectTick: found.tick, ...written };
  return { ...planned, ...values, ...sealing, change };
}

/** A task that ended in the estate gets no pillars any more; one that ended elsewhere comes with them. */
async function checkLive(lookup: Lookup, id: string): Promise<void> {
  const task = await lookup.getTask(id);
  if (task === undefined || !isEndState(task.state) || task.tick === PLANNED) return;
  throw refuse('tgt_id', 'the task has ended');
}

/** Secret ↔ plain changes only by the endpoints for it; a secret's value only where the caller says so. */
function checkSecrecy(
  { replaceSecrets }: Planning,
  found: { isSecret: boolean; value: Value },
  asked: { isSecret: boolean; isSealed: boolean; value: Value },
): void {
  if (found.isSecret !== asked.isSecret) {
    const now = found.isSecret ? 'a secret' : 'plain';
    throw refuse('is_secret', `it is ${now} in the estate; seal and unseal are endpoints of their own`);
  }
  if (!found.isSecret || replaceSecrets || (asked.isSealed && valuesEqual(found.value, asked.value))) return;
  const why = 'value: the secret is there already; leave it out, or allow replace_secrets';
  throw new ColonnadeError('secret_immutable', why, { field: 'value' });
}

/** A plan as one line, for its fingerprint: which change, on which state. Of secrets nothing can be guessed from it. */
export function fingerprintOf({ change, kind, key, isSecret, after }: Planned): Value {
  if (change === undefined) return fromPlain([kind, key]);
  const expect = 'expectTick' in change ? change.expectTick : 'expect' in change ? change.expect : 'absent';
  return [...(fromPlain([kind, key, String(expect), isSecret ?? false]) as Value[]), after ?? null];
}

/** Whose twin stands before it in the file. */
export function identityOf(planned: Planned): string {
  return `${planned.kind} ${planned.key}`;
}

export function shown(before: object | undefined, after: object): { before?: Value; after: Value } {
  return { ...(before === undefined ? {} : { before: fromPlain(before) }), after: fromPlain(after) };
}

export function isUnchanged({ before, after }: { before?: Value; after: Value }): boolean {
  return before !== undefined && valuesEqual(before, after);
}

export function may({ access }: Principal, permission: Permission): void {
  requirePermission(access.whole, permission);
}

function mayName(principal: Principal, name: string): void {
  if (isSaltControlName(name)) may(principal, 'pillar:salt-control');
}

export function refuse(field: string, why: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `${field}: ${why}`, { field });
}

export function unknownMaster(): ColonnadeError {
  return new ColonnadeError('unknown_master', 'master: no such master', { field: 'master' });
}

/** What is wrong with the record in this line. */
export function atLine(line: number, thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  const { code, message, field } = thrown;
  // In a body that was read whole this would be its syntax; of a stream the records before it were fine.
  const refused = code === 'bad_request' ? 'unprocessable' : code;
  const options = field === undefined ? { cause: thrown } : { field, cause: thrown };
  return new ColonnadeError(refused, `the record in line ${line}: ${message}; nothing was imported`, options);
}
