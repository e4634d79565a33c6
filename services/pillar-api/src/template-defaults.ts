import { randomUUID } from 'node:crypto';
import { ColonnadeError, LIMITS, type NamedValue, taskTemplateTarget } from '@colonnade/contracts';
import type { EstateStore, Mutation, OutboxDraft, PillarRecord } from '@colonnade/estate-store';
import { requireOn } from './auth/scope.ts';
import { pillarEvent } from './estate-events.ts';
import { everyRow } from './every-row.ts';
import type { Input } from './http/route.ts';
import type { Kms } from './kms.ts';
import { checkOpenValue } from './pillar-value.ts';
import { sealForStore } from './seal.ts';

type Asked = Pick<Input<unknown, unknown, unknown>, 'principal' | 'call'>;

/** All that a user saved for a template, by name. */
export async function readDefaults(
  store: Pick<EstateStore, 'listPillars'>,
  templateId: string,
  user: string,
): Promise<readonly PillarRecord[]> {
  const { tgtType, tgtId, pillarenv } = taskTemplateTarget(templateId, user);
  const own = { tgtTypes: [tgtType], tgtId, pillarenv };
  const rows = await Array.fromAsync(everyRow((page) => store.listPillars(own, page)));
  return rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * What it takes to save these values as a user's defaults of a template (seed 000, task_tpl). A secret's value is never
 * changed in place, so one that was a secret, or no longer is one, is made anew.
 * @throws ColonnadeError `forbidden` | `value_invalid` | `unprocessable` (too many) | of crypto-kms
 */
export async function draftDefaults(
  deps: { store: Pick<EstateStore, 'listPillars'>; kms: Kms },
  asked: Asked,
  templateId: string,
  change: { pillars: readonly NamedValue[]; remove: readonly string[] },
): Promise<{ mutations: Mutation[]; events: OutboxDraft[] }> {
  const found = await readDefaults(deps.store, templateId, asked.principal.sub);
  const before = new Map(found.map((pillar) => [pillar.name, pillar]));
  const drafts: { mutations: Mutation[]; events: OutboxDraft[] } = { mutations: [], events: [] };
  const target = taskTemplateTarget(templateId, asked.principal.sub);
  for (const name of change.remove) {
    const pillar = before.get(name);
    if (pillar === undefined) continue;
    await requireOn(asked.principal, 'pillar:write', pillar);
    drop(drafts, pillar);
    before.delete(name);
  }
  for (const { name, value, is_secret: isSecret = false } of change.pillars) {
    const context = { ...target, name };
    await requireOn(asked.principal, 'pillar:write', context);
    checkOpenValue(value);
    const kept = isSecret ? await sealForStore(deps.kms, asked, context, value) : value;
    const pillar = before.get(name);
    if (pillar !== undefined && !pillar.isSecret) {
      const { pid, tick: expectTick } = pillar;
      drafts.mutations.push({ kind: 'pillar.update', pid, expectTick, value: kept, isSecret });
      drafts.events.push(pillarEvent('pillar.updated', { ...pillar, isSecret }));
      continue;
    }
    if (pillar !== undefined) drop(drafts, pillar);
    const record = { pid: randomUUID(), ...context, value: kept, isSecret };
    before.set(name, record as unknown as PillarRecord);
    drafts.mutations.push({ kind: 'pillar.create', record });
    drafts.events.push(pillarEvent('pillar.created', record));
  }
  if (before.size <= LIMITS.pillarsPerTask) return drafts;
  const why = `pillars: a template has at most ${LIMITS.pillarsPerTask} defaults of one user`;
  throw new ColonnadeError('unprocessable', why, { field: 'pillars' });
}

function drop(drafts: { mutations: Mutation[]; events: OutboxDraft[] }, pillar: PillarRecord): void {
  drafts.mutations.push({ kind: 'pillar.delete', pid: pillar.pid, expectTick: pillar.tick });
  drafts.events.push(pillarEvent('pillar.deleted', pillar));
}

/** Someone saved defaults at the same time; what was read to decide no longer holds. */
export function asDefaultsRace(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  if (thrown.code !== 'precondition_failed' && thrown.code !== 'already_exists') return thrown;
  return new ColonnadeError('conflict', 'the defaults have changed meanwhile: try again', { cause: thrown });
}
