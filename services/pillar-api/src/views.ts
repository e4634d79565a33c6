import {
  collectionEnv,
  IDENTITY_KEY,
  type PillarView,
  SECRET_MASK,
  taskEnv,
  type zCollectionView,
  type zKeyVersion,
  type zKeyVersionView,
  type zMasterView,
  type zMinionView,
  type zRevocationView,
  type zRewrapView,
  type zServiceView,
  type zTaskView,
  type zTemplateView,
  type zTokenView,
} from '@colonnade/contracts';
import type {
  ApiTokenRecord,
  CollectionRecord,
  MasterRecord,
  MinionRecord,
  PillarRecord,
  ServiceRecord,
  TaskRecord,
  TemplateRecord,
} from '@colonnade/estate-store';
import { isEndState, namedCollections } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { parseValue } from '@colonnade/value';
import type { z } from 'zod';
import { kindOf } from './auth/revocations.ts';
import { etagOf } from './http/etag.ts';
import type { RewrapStatus } from './rewrap/worker.ts';
import { typesOf } from './service-events/own-types.ts';

/** What a record looks like in an answer. The one place where a secret's value becomes the mask. */

export function shownValue(pillar: Pick<PillarRecord, 'value' | 'isSecret'>): Value {
  return pillar.isSecret ? SECRET_MASK : pillar.value;
}

export function viewPillar(pillar: PillarRecord, incarnation: string): PillarView {
  return {
    pid: pillar.pid,
    tgt_type: pillar.tgtType,
    tgt_id: pillar.tgtId,
    pillarenv: pillar.pillarenv,
    name: pillar.name,
    value: shownValue(pillar),
    is_secret: pillar.isSecret,
    created_by: pillar.createdBy,
    updated_by: pillar.updatedBy,
    created_at: viewTime(pillar.createdAtMs),
    updated_at: viewTime(pillar.updatedAtMs),
    clock: pillar.tick,
    etag: etagOf(pillar.pid, incarnation, pillar.tick),
  };
}

export function viewCollection(
  collection: CollectionRecord,
  incarnation: string,
): z.output<typeof zCollectionView> {
  const { id, name, parentId, owner, rule, tick } = collection;
  return {
    id,
    name,
    parent_id: parentId ?? null,
    owner,
    pillarenv: collectionEnv(id, owner),
    ...(rule === undefined ? {} : { rule: parseValue(rule) }),
    clock: tick,
    etag: etagOf(id, incarnation, tick),
  };
}

export function viewService(service: ServiceRecord, incarnation: string): z.output<typeof zServiceView> {
  const { id, enrolmentIds, tick } = service;
  const types = [...typesOf(service)];
  return { id, types, enrolment_ids: [...enrolmentIds], clock: tick, etag: etagOf(id, incarnation, tick) };
}

export function viewMaster(master: MasterRecord, incarnation: string): z.output<typeof zMasterView> {
  return {
    id: master.id,
    envs: [...master.envs],
    on_unknown_minion: master.onUnknownMinion,
    token_ids: [...master.tokenIds],
    clock: master.tick,
    etag: etagOf(master.id, incarnation, master.tick),
  };
}

export function viewMinion(minion: MinionRecord, incarnation: string): z.output<typeof zMinionView> {
  return {
    master: minion.master,
    id: minion.id,
    collections: [...namedCollections(minion)],
    ...(minion.byRule === undefined ? {} : { rule_collections: [...minion.byRule] }),
    registered_by: minion.registeredBy,
    clock: minion.tick,
    etag: etagOf(`${minion.master}/${minion.id}`, incarnation, minion.tick),
  };
}

export function viewToken(token: ApiTokenRecord): z.output<typeof zTokenView> {
  return {
    id: token.id,
    sub: token.sub,
    roles: [...token.roles],
    scoped_roles: [...token.scopedRoles],
    created_at: viewTime(token.createdAtMs),
    expires_at: viewOptionalTime(token.expiresAtMs),
    last_used_at: viewOptionalTime(token.lastUsedAtMs),
  };
}

export function viewRevocation(record: Omit<ApiTokenRecord, 'tick'>): z.output<typeof zRevocationView> {
  const isUser = kindOf(record) === 'sub';
  return {
    id: record.id,
    sub: isUser ? record.sub : null,
    jti: isUser ? null : record.sub,
    revoked_at: viewTime(record.createdAtMs),
    ends_at: viewTime(record.expiresAtMs ?? record.createdAtMs),
  };
}

/** @param use values stored under each kid */
export function viewKeyVersion(
  key: { name: string; min_version: number },
  one: z.output<typeof zKeyVersion>,
  use: ReadonlyMap<string, number>,
): z.output<typeof zKeyVersionView> {
  const { version, kid, state, encryptions } = one;
  return {
    ...{ name: key.name, purpose: key.name === IDENTITY_KEY ? 'sign' : 'seal' },
    ...{ version, kid, state, encryptions },
    opens: version >= key.min_version && state !== 'destroyed',
    values: use.get(kid) ?? 0,
    created_at: viewTime(one.created_at_ms),
    active_from: viewTime(one.active_from_ms),
    destroyed_at: viewOptionalTime(one.destroyed_at_ms ?? undefined),
    erased_after: viewOptionalTime(one.erase_after_ms ?? undefined),
  };
}

export function viewRewrap({ key, kid, left, run }: RewrapStatus): z.output<typeof zRewrapView> {
  const isRunning = run !== undefined && run.finishedAtMs === undefined;
  return {
    ...{ name: key.name, state: isRunning ? 'running' : 'idle', kid, left },
    run:
      run === undefined
        ? null
        : {
            ...{ by: run.by, kid: run.kid, rewrapped: run.rewrapped, failed: run.failed },
            started_at: viewTime(run.startedAtMs),
            updated_at: viewTime(run.updatedAtMs),
            finished_at: viewOptionalTime(run.finishedAtMs),
          },
  };
}

function viewOptionalTime(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : viewTime(epochMs);
}

export function viewTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

export function viewTemplate(template: TemplateRecord, incarnation: string): z.output<typeof zTemplateView> {
  const { id, name, schema, tick } = template;
  return { id, name, schema, ...viewWritten(template), clock: tick, etag: etagOf(id, incarnation, tick) };
}

/** @param nowMs decides whether it is live */
export function viewTask(task: TaskRecord, incarnation: string, nowMs: number): z.output<typeof zTaskView> {
  const { id, state, expiresAtMs, endedAtMs, tick } = task;
  return {
    ...{ id, tpl_id: task.templateId, state },
    live: !isEndState(state) && (expiresAtMs === undefined || expiresAtMs > nowMs),
    minions: task.minions.map((minion) => ({ master: minion.master, minion_id: minion.id })),
    collections: [...task.collections],
    pillarenv: taskEnv(id),
    ...viewWritten(task),
    expires_at: expiresAtMs === undefined ? null : viewTime(expiresAtMs),
    ended_at: endedAtMs === undefined ? null : viewTime(endedAtMs),
    clock: tick,
    etag: etagOf(id, incarnation, tick),
  };
}

function viewWritten(
  record: Pick<TemplateRecord, 'createdBy' | 'updatedBy' | 'createdAtMs' | 'updatedAtMs'>,
) {
  return {
    created_by: record.createdBy,
    updated_by: record.updatedBy,
    created_at: viewTime(record.createdAtMs),
    updated_at: viewTime(record.updatedAtMs),
  };
}
