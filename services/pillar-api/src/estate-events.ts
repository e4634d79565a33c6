import type { EventType, InventoryFacts } from '@colonnade/contracts';
import type {
  CollectionRecord,
  MasterRecord,
  MinionRecord,
  OutboxDraft,
  PillarRecord,
  TaskRecord,
  TemplateRecord,
} from '@colonnade/estate-store';
import { fromPlain, type Value } from '@colonnade/value';

/** What the outbox gets. Never a value: a subscriber that needs one asks for it, with rights of its own. */

type Part<E extends string, A extends string> = Extract<EventType, `${A}.${E}`>;

export function pillarEvent(
  type: Part<'created' | 'updated' | 'deleted', 'pillar'>,
  pillar: Pick<PillarRecord, 'pid' | 'tgtType' | 'tgtId' | 'pillarenv' | 'name' | 'isSecret'>,
): OutboxDraft {
  const { pid, tgtType, tgtId, pillarenv, name, isSecret } = pillar;
  const data = { pid, tgt_type: tgtType, tgt_id: tgtId, pillarenv, name, is_secret: isSecret };
  return { type, subject: `/pillars/${pid}`, data: fromPlain(data) };
}

type Place = Pick<PillarRecord, 'tgtType' | 'tgtId' | 'pillarenv' | 'name'>;

/** `pillar`: as it is from now on. */
export function pillarMovedEvent(
  type: Part<'renamed' | 'moved', 'pillar'>,
  pillar: Parameters<typeof pillarEvent>[1],
  from: Place,
): OutboxDraft {
  const { subject, data } = pillarEvent('pillar.updated', pillar);
  const { tgtType, tgtId, pillarenv, name } = from;
  const was = fromPlain({ tgt_type: tgtType, tgt_id: tgtId, pillarenv, name });
  return { type, subject, data: { ...(data as { [key: string]: Value }), from: was } };
}

export function collectionEvent(
  type: Part<'created' | 'updated' | 'deleted', 'collection'>,
  collection: Omit<CollectionRecord, 'tick'>,
): OutboxDraft {
  const { id, name, parentId, owner } = collection;
  const data = { id, name, parent_id: parentId ?? null, owner };
  return { type, subject: `/collections/${encodeURIComponent(id)}`, data: fromPlain(data) };
}

export function masterEvent(
  type: Part<'registered' | 'updated' | 'deleted', 'master'>,
  master: Pick<MasterRecord, 'id' | 'envs' | 'onUnknownMinion'>,
): OutboxDraft {
  const { id, envs, onUnknownMinion } = master;
  const data = { id, envs: [...envs], on_unknown_minion: onUnknownMinion };
  return { type, subject: `/masters/${id}`, data: fromPlain(data) };
}

export function minionEvent(
  type: Part<'registered' | 'updated' | 'deleted' | 'moved', 'minion'>,
  minion: Omit<MinionRecord, 'tick'>,
  facts?: InventoryFacts,
  fromMaster?: string,
): OutboxDraft {
  const { master, id, collections, registeredBy } = minion;
  const told = {
    ...(facts === undefined ? {} : { facts: factsData(facts) }),
    ...(fromMaster === undefined ? {} : { from_master: fromMaster }),
  };
  const data = { master, id, collections: [...collections], registered_by: registeredBy, ...told };
  return { type, subject: minionPath(master, id), data: fromPlain(data) };
}

export function inventoryEvent(
  type: Part<'inventory-received' | 'inventory-deleted', 'minion'>,
  inventory: { master: string; id: string; facts: InventoryFacts; state: 'pending' | 'accepted' },
): OutboxDraft {
  const { master, id, facts, state } = inventory;
  const data = { master, id, state, facts: factsData(facts) };
  return { type, subject: minionPath(master, id), data: fromPlain(data) };
}

function minionPath(master: string, id: string): string {
  return `/masters/${master}/minions/${encodeURIComponent(id)}`;
}

/** What hooks are told (seed 002); properties are for whoever asks for them. */
function factsData({ hostname, os, ips, agent_type, roles }: InventoryFacts) {
  return {
    hostname: hostname ?? '',
    os_name: os?.name ?? '',
    os_version: os?.version ?? '',
    os_service_pack: os?.service_pack ?? '',
    os_string: os?.string ?? '',
    ips: ips ?? [],
    agent_type: agent_type ?? '',
    roles: roles ?? [],
  };
}

export function templateEvent(
  type: Part<'created' | 'updated' | 'deleted', 'template'>,
  { id, name }: Pick<TemplateRecord, 'id' | 'name'>,
): OutboxDraft {
  return { type, subject: `/tasks/templates/${encodeURIComponent(id)}`, data: fromPlain({ id, name }) };
}

export function taskEvent(
  type: Part<'created' | 'state_changed' | 'deleted', 'task'>,
  task: Pick<TaskRecord, 'id' | 'templateId' | 'state' | 'minions' | 'collections'>,
): OutboxDraft {
  const { id, templateId, state, minions, collections } = task;
  const targets = { minions: minions.map((one) => ({ master: one.master, minion_id: one.id })) };
  const data = { id, tpl_id: templateId, state, ...targets, collections: [...collections] };
  return { type, subject: `/tasks/${encodeURIComponent(id)}`, data: fromPlain(data) };
}
